//! Which outputs replace which inputs.
//!
//! A compaction with several outputs, of which others are merged on, ties all their inputs together: the outputs replace
//! the inputs as one set, of which nothing may be left out.

use std::path::PathBuf;

/// Identifier of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ReplacementId(usize);

/// Disjoint sets of inputs, each with `Data.db` of those that are replaced together.
#[derive(Clone, Debug, Default)]
pub(super) struct Replacements {
    sets: Vec<Set>,
}

#[derive(Clone, Debug)]
enum Set {
    Inputs(Vec<PathBuf>),
    JoinedTo(ReplacementId),
}

impl Replacements {
    /// Adds a set of inputs, joined with other sets.
    pub(super) fn join(
        &mut self,
        inputs: Vec<PathBuf>,
        others: impl IntoIterator<Item = ReplacementId>,
    ) -> ReplacementId {
        let joined = ReplacementId(self.sets.len());
        let mut all = inputs;
        for other in others {
            let root = self.current(other);
            if let Some(set) = self.sets.get_mut(root.0)
                && let Set::Inputs(inputs) = std::mem::replace(set, Set::JoinedTo(joined))
            {
                all.extend(inputs);
            }
        }
        self.sets.push(Set::Inputs(all));
        joined
    }

    /// The set that this one was joined to in the end.
    pub(super) fn current(&self, mut id: ReplacementId) -> ReplacementId {
        while let Some(Set::JoinedTo(next)) = self.sets.get(id.0) {
            id = *next;
        }
        id
    }

    /// The sets that were not joined to another.
    pub(super) fn iter(&self) -> impl Iterator<Item = (ReplacementId, &[PathBuf])> {
        let sets = self.sets.iter().enumerate();
        sets.filter_map(|(number, set)| match set {
            Set::Inputs(inputs) => Some((ReplacementId(number), &inputs[..])),
            Set::JoinedTo(_) => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_with_a_common_input_are_one() {
        let path = |name: &str| vec![PathBuf::from(name)];
        let mut all = Replacements::default();
        let a = all.join(path("a"), []);
        let b = all.join(path("b"), []);
        let c = all.join(path("c"), []);
        let both = all.join(path("d"), [a, c, a]);
        assert_eq!(all.current(a), both);
        assert_eq!(all.current(c), both);
        assert_eq!(all.current(b), b);
        let sets: Vec<Vec<PathBuf>> = all.iter().map(|(_, inputs)| inputs.to_vec()).collect();
        assert_eq!(
            sets,
            [path("b"), ["d", "a", "c"].map(PathBuf::from).to_vec()]
        );
    }
}
