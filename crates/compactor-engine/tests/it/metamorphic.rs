//! Properties that must not matter: order and grouping of inputs, their division into blocks, and merging a
//! merge again. These tests use no model.

use compactor_sstable::data::clustering::Kind;
use compactor_sstable::data::deletion_time::DeletionTime;

use compactor_testkit::model::case::{Case, PurgePlan, Source, case, moderate_case};
use compactor_testkit::model::choices::{Choices, check};
use compactor_testkit::model::engine::{Input, Output, serialization_header};
use compactor_testkit::model::expected_statistics::ExpectedStatistics;
use compactor_testkit::model::naive;
use compactor_testkit::model::order::side;
use compactor_testkit::model::stored::stored;
use compactor_testkit::model::table::{Column, Row, Unfiltered, hex};

fn same(what: &str, a: &Output, b: &Output) -> Result<(), String> {
    if a.bytes != b.bytes {
        return Err(format!("{what}\n{}\n{}", hex(&a.bytes), hex(&b.bytes)));
    }
    if a.index != b.index {
        return Err(format!("{what}: {:?}\n{:?}", a.index, b.index));
    }
    // Unknown values are NaN, which is not equal to itself.
    let (a, b) = (format!("{:?}", a.statistics), format!("{:?}", b.statistics));
    if a != b {
        return Err(format!("{what}: statistics\n{a}\n{b}"));
    }
    Ok(())
}

#[test]
fn the_order_of_inputs_does_not_matter() {
    let verify = |case: &Case| {
        let mut inputs = case.inputs();
        let first = case.merge(&inputs, case.purge)?;
        let mut choices = Choices::from_seed(inputs.len() as u64);
        for _ in 0..3 {
            for at in (1..inputs.len()).rev() {
                inputs.swap(at, choices.below(at + 1));
            }
            same("order", &first, &case.merge(&inputs, case.purge)?)?;
        }
        Ok(())
    };
    check(
        "order of inputs",
        200,
        |choices| case(choices, 6),
        verify,
        Case::simpler,
    );
}

#[test]
fn blocks_do_not_matter() {
    let verify = |case: &Case| {
        let first = case.run()?;
        let mut inputs = case.inputs();
        for (block_len, output_block_len) in [(1, 1), (3, 50), (100, 7), (100_000, 1000)] {
            inputs
                .iter_mut()
                .for_each(|input| input.block_len = block_len);
            let mut case = case.clone();
            case.settings.output_block_len = output_block_len;
            same("blocks", &first, &case.merge(&inputs, case.purge)?)?;
        }
        Ok(())
    };
    let small = |choices: &mut Choices| loop {
        let case = case(choices, 3);
        if case.inputs().iter().all(|input| input.bytes.len() < 5000) {
            return case;
        }
    };
    check("blocks", 100, small, verify, Case::simpler);
}

/// An output as an input of the next merge.
pub fn as_input(case: &Case, output: &Output) -> Result<Input, String> {
    let table = case.read(&case.settings.output, &output.bytes, 4096)?;
    let min_local_deletion_time =
        ExpectedStatistics::of(&case.schema, &table).min_local_deletion_time;
    if min_local_deletion_time < output.statistics.stats.min_local_deletion_time {
        return Err(format!("{:?} is not the minimum", output.statistics.stats));
    }
    Ok(Input {
        bytes: output.bytes.clone(),
        block_len: 64,
        min_local_deletion_time,
        may_have_ttl: true,
        ..empty_input(case)
    })
}

/// TTLs are removed before anything else happens: the result is that of inputs which never had any.
#[test]
fn ttls_are_removed_first() {
    let generate = |choices: &mut Choices| {
        let mut case = case(choices, 6);
        case.settings.strips_ttl = true;
        case
    };
    let verify = |case: &Case| {
        let stripped = case.run()?;
        let mut without = case.clone();
        without.settings.strips_ttl = false;
        for source in &mut without.sources {
            // What a header or version cannot represent changes when it is written.
            source.table = source.stored();
            naive::strip_ttl(&mut source.table);
        }
        let expected = without.run()?;
        same("TTLs", &expected, &stripped)?;
        let mut purged = stripped.counts.purged;
        (purged.stripped_cells, purged.stripped_rows) = (0, 0);
        if purged != expected.counts.purged {
            let expected = expected.counts.purged;
            return Err(format!("counts {purged:?} but {expected:?}"));
        }
        Ok(())
    };
    check("TTLs", 250, generate, verify, Case::simpler);
}

#[test]
fn a_merge_of_a_merge_changes_nothing() {
    let verify = |case: &Case| {
        let first = case.run()?;
        let again = case.merge(&[as_input(case, &first)?], case.purge)?;
        same("again", &first, &again)
    };
    check(
        "again",
        250,
        |choices| moderate_case(choices, 4),
        verify,
        Case::simpler,
    );
}

/// Merging in steps has the same result, if nothing is purged in between.
///
/// Except for shadowable deletions, here as in Cassandra: one that a newer liveness removes may already have
/// superseded an older deletion that is not shadowable, which is kept with another grouping.
#[test]
fn grouping_does_not_matter() {
    let generate = |choices: &mut Choices| {
        let mut case = case_without_counters(choices);
        case.purge = PurgePlan::Nothing;
        case.settings.now_s = 0;
        for source in &mut case.sources {
            make_consistent(source);
        }
        case
    };
    let verify = |case: &Case| {
        let inputs = case.inputs();
        let together = case.merge(&inputs, case.purge)?;
        let mut one_by_one: Option<Input> = None;
        for input in &inputs {
            let mut pair = vec![input.clone()];
            pair.extend(one_by_one);
            one_by_one = Some(as_input(case, &merge_some(case, &pair)?)?);
        }
        let mut halves = Vec::new();
        for half in inputs.chunks(inputs.len().div_ceil(2)) {
            halves.push(as_input(case, &merge_some(case, half)?)?);
        }
        let steps: Vec<Input> = one_by_one.into_iter().collect();
        same("one by one", &together, &case.merge(&steps, case.purge)?)?;
        same("halves", &together, &case.merge(&halves, case.purge)?)
    };
    check("grouping", 200, generate, verify, Case::simpler);
}

/// An input without partitions, but with all columns.
pub fn empty_input(case: &Case) -> Input {
    let header = &case.settings.output;
    Input {
        header: serialization_header(&case.schema, header),
        version: header.version,
        bytes: Vec::new(),
        block_len: 1,
        min_local_deletion_time: i64::MAX,
        may_have_ttl: false,
    }
}

/// Merges some of a case's inputs, with the header of the output.
pub fn merge_some(case: &Case, inputs: &[Input]) -> Result<Output, String> {
    let mut inputs = inputs.to_vec();
    inputs.push(empty_input(case));
    case.merge(&inputs, case.purge)
}

/// Generates a case without counters: counters that are summed before they meet a deletion are not deleted, not even
/// the shards that it covers.
pub fn case_without_counters(choices: &mut Choices) -> Case {
    loop {
        let case = moderate_case(choices, 5);
        if !case.schema.columns.iter().any(Column::is_counter) {
            return case;
        }
    }
}

/// Makes rows consistent in themselves: deletions are not shadowable, and no cell has the timestamp of its
/// column's deletion, since whether it is kept would depend on other data.
pub fn make_consistent(source: &mut Source) {
    let settle = |row: &mut Row| {
        row.is_shadowable = false;
        for data in row.columns.values_mut() {
            let deletion = data.deletion.marked_for_delete_at;
            data.cells.retain(|cell| cell.timestamp > deletion);
        }
    };
    for partition in source.table.values_mut() {
        settle(&mut partition.static_row);
        for unfiltered in &mut partition.unfiltereds {
            if let Unfiltered::Row { row, .. } = unfiltered {
                settle(row);
            }
        }
    }
}

/// Some writers write a closing and an opening bound where Cassandra writes a boundary.
#[test]
fn boundaries_may_be_two_bounds() {
    let verify = |case: &Case| {
        let expected = case.expected();
        let header = &case.settings.output;
        let mut split = case.clone();
        for source in &mut split.sources {
            for partition in source.table.values_mut() {
                let whole = std::mem::take(&mut partition.unfiltereds);
                partition.unfiltereds = whole.into_iter().flat_map(split_boundary).collect();
            }
        }
        let output = split.run()?;
        let mut found = case.read(header, &output.bytes, 64)?;
        for partition in found.values_mut() {
            join_bounds(&mut partition.unfiltereds);
        }
        let expected = stored(&expected, header);
        for (key, partition) in &expected {
            match found.get(key) {
                Some(found) if naive::as_read(&case.schema, partition) == *found => {}
                found => return Err(format!("expected {partition:?}\nfound {found:?}")),
            }
        }
        if found.len() == expected.len() {
            Ok(())
        } else {
            Err(format!("{} partitions of {}", found.len(), expected.len()))
        }
    };
    check(
        "boundaries",
        200,
        |choices| moderate_case(choices, 3),
        verify,
        Case::simpler,
    );
}

fn split_boundary(unfiltered: Unfiltered) -> Vec<Unfiltered> {
    let Unfiltered::Marker {
        kind,
        bound,
        close,
        open,
    } = &unfiltered
    else {
        return vec![unfiltered];
    };
    let (end, start) = match kind {
        Kind::ExclEndInclStartBoundary => (Kind::ExclEndBound, Kind::InclStartBound),
        Kind::InclEndExclStartBoundary => (Kind::InclEndBound, Kind::ExclStartBound),
        _ => return vec![unfiltered],
    };
    let marker = |kind, close, open| Unfiltered::Marker {
        kind,
        bound: bound.clone(),
        close,
        open,
    };
    vec![
        marker(end, *close, DeletionTime::LIVE),
        marker(start, DeletionTime::LIVE, *open),
    ]
}

/// Joins a closing and an opening bound at one position.
fn join_bounds(unfiltereds: &mut Vec<Unfiltered>) {
    let mut joined: Vec<Unfiltered> = Vec::new();
    for unfiltered in unfiltereds.drain(..) {
        if let Unfiltered::Marker {
            kind, bound, open, ..
        } = &unfiltered
            && let Some(Unfiltered::Marker {
                kind: before,
                bound: at,
                close,
                ..
            }) = joined.last()
            && at == bound
            && side(*before) == side(*kind)
        {
            let (close, open, bound) = (*close, *open, bound.clone());
            joined.pop();
            let kind = match side(*kind) {
                -1 => Kind::ExclEndInclStartBoundary,
                _ => Kind::InclEndExclStartBoundary,
            };
            joined.push(Unfiltered::Marker {
                kind,
                bound,
                close,
                open,
            });
            continue;
        }
        joined.push(unfiltered);
    }
    *unfiltereds = joined;
}
