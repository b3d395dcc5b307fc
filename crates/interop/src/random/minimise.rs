//! A smaller plan that still fails: greedy, larger pieces first.

use super::plan::Plan;

/// Leaves out whole inputs, then partitions, then runs of mutations, as long as `fails` returns true.
pub(super) fn minimise(mut plan: Plan, mut fails: impl FnMut(&Plan) -> bool) -> Plan {
    loop {
        let before = (plan.inputs.len(), plan.mutations());
        for at in (0..plan.inputs.len()).rev() {
            if plan.inputs.len() > 1 {
                try_without(&mut plan, &mut fails, |plan| {
                    plan.inputs.remove(at);
                    plan.others = plan.others.min(plan.inputs.len() - 1);
                });
            }
        }
        for input in 0..plan.inputs.len() {
            for at in (0..plan.inputs[input].partitions.len()).rev() {
                try_without(&mut plan, &mut fails, |plan| {
                    plan.inputs[input].partitions.remove(at);
                });
            }
            for partition in 0..plan.inputs[input].partitions.len() {
                mutations(&mut plan, &mut fails, input, partition);
            }
        }
        if (plan.inputs.len(), plan.mutations()) == before {
            return plan;
        }
    }
}

fn mutations(
    plan: &mut Plan,
    fails: &mut impl FnMut(&Plan) -> bool,
    input: usize,
    partition: usize,
) {
    let count = |plan: &Plan| plan.inputs[input].partitions[partition].mutations.len();
    let mut length = count(plan);
    while length > 0 {
        let mut end = count(plan);
        while end > 0 {
            let start = end.saturating_sub(length);
            try_without(plan, fails, |plan| {
                plan.inputs[input].partitions[partition]
                    .mutations
                    .drain(start..end);
            });
            end = start;
        }
        length /= 2;
    }
}

fn try_without(
    plan: &mut Plan,
    fails: &mut impl FnMut(&Plan) -> bool,
    remove: impl FnOnce(&mut Plan),
) {
    let mut smaller = plan.clone();
    remove(&mut smaller);
    smaller.compress_as_newest();
    if fails(&smaller) {
        *plan = smaller;
    }
}
