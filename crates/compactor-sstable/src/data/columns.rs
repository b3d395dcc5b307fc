//! Subset of the header's columns that a row has.
//!
//! With fewer than 64 columns one vint bitmap marks the *missing* ones; with 64 or more, a count of missing
//! columns is followed by the shorter of the two lists of indexes.
//!
//! Source: `Columns.Serializer.serializeSubset`, `deserializeSubset`.

use crate::byte_sink::ByteSink;
use crate::error::{Error, Result};
use crate::vint;

/// Minimum column count of the list form; fewer columns have a bit each.
pub const LIST_FORM_FROM: usize = 64;

/// The columns present in a row whose header has [`LIST_FORM_FROM`] or more, ascending, without memory of its own.
#[derive(Clone, Debug)]
pub struct PresentColumns<'a> {
    /// The rest of the list: of the present columns, or of the missing ones.
    list: &'a [u8],
    lists_present: bool,
    /// The next column, and the next missing one, if those are listed.
    next: usize,
    next_missing: Option<usize>,
    /// Columns not yet returned.
    remaining: usize,
}

impl<'a> PresentColumns<'a> {
    /// All `count` columns of the header.
    pub fn all(count: usize) -> PresentColumns<'a> {
        PresentColumns {
            list: &[],
            lists_present: false,
            next: 0,
            next_missing: None,
            remaining: count,
        }
    }

    /// Parses a subset of `count` header columns at `*pos`; offsets in errors are relative to
    /// `bytes`.
    ///
    /// # Errors
    /// Corruption if bytes are missing, or indexes are beyond the header or do not ascend.
    #[cold]
    pub fn parse(bytes: &'a [u8], pos: &mut usize, count: usize) -> Result<PresentColumns<'a>> {
        let at = *pos;
        let head = vint::read_unsigned(bytes, pos).ok_or_else(|| short(at))?;
        let missing = usize::try_from(head).ok().filter(|m| *m <= count);
        let missing = missing.ok_or_else(|| {
            Error::corrupt(
                "row.columns_subset.missing_count",
                at as u64,
                format!("at most {count} columns"),
                head,
            )
        })?;
        let present = count - missing;
        // The writer uses the same condition to choose between the two lists.
        let lists_present = present < count / 2;
        let listed = if lists_present { present } else { missing };
        let list_at = *pos;
        let mut previous: Option<u64> = None;
        for _ in 0..listed {
            let item_at = *pos;
            let index = vint::read_unsigned(bytes, pos).ok_or_else(|| short(item_at))?;
            if index >= count as u64 || previous.is_some_and(|p| index <= p) {
                return Err(Error::corrupt(
                    "row.columns_subset.index",
                    item_at as u64,
                    format!("ascending indexes below {count}"),
                    index,
                ));
            }
            previous = Some(index);
        }
        let mut columns = PresentColumns {
            list: &bytes[list_at..*pos],
            lists_present,
            remaining: present,
            ..PresentColumns::all(count)
        };
        if !lists_present {
            columns.next_missing = columns.next_listed();
        }
        Ok(columns)
    }

    /// Number of columns not yet returned.
    pub fn remaining(&self) -> usize {
        self.remaining
    }

    /// Next index in the list, which was validated while parsing.
    fn next_listed(&mut self) -> Option<usize> {
        let mut pos = 0;
        let index = vint::read_unsigned(self.list, &mut pos)?;
        self.list = &self.list[pos..];
        Some(index as usize)
    }
}

impl Iterator for PresentColumns<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        self.remaining = self.remaining.checked_sub(1)?;
        if self.lists_present {
            return self.next_listed();
        }
        while self.next_missing == Some(self.next) {
            self.next += 1;
            self.next_missing = self.next_listed();
        }
        self.next += 1;
        Some(self.next - 1)
    }
}

/// Set of columns by their index. Allocates no memory for the first 64 columns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ColumnSet {
    /// Bit set of the first 64 columns.
    first: u64,
    /// Bit sets of the other columns, 64 each.
    rest: Vec<u64>,
}

impl ColumnSet {
    /// Removes all columns.
    #[inline(always)]
    pub fn clear(&mut self) {
        self.first = 0;
        self.rest.clear();
    }

    /// Adds columns from a bit set of the first 64.
    #[inline(always)]
    pub fn insert_first(&mut self, columns: u64) {
        self.first |= columns;
    }

    /// Adds a column.
    #[inline(always)]
    pub fn insert(&mut self, index: usize) {
        if index < 64 {
            self.first |= 1 << index
        } else {
            self.insert_in_rest(index)
        }
    }

    #[cold]
    fn insert_in_rest(&mut self, index: usize) {
        let word = index / 64 - 1;
        if self.rest.len() <= word {
            self.rest.resize(word + 1, 0);
        }
        self.rest[word] |= 1 << (index % 64);
    }

    /// Whether the set contains the column.
    #[inline(always)]
    pub fn contains(&self, index: usize) -> bool {
        let word = if index < 64 {
            Some(&self.first)
        } else {
            self.rest.get(index / 64 - 1)
        };
        word.is_some_and(|word| word & (1 << (index % 64)) != 0)
    }

    /// Removes the columns for which `keep` returns false.
    #[inline]
    pub fn retain(&mut self, mut keep: impl FnMut(usize) -> bool) {
        let words = std::iter::once(&mut self.first).chain(&mut self.rest);
        for (number, word) in words.enumerate() {
            let mut left = *word;
            while left != 0 {
                let bit = left.trailing_zeros() as usize;
                left &= left - 1;
                if !keep(64 * number + bit) {
                    *word &= !(1 << bit);
                }
            }
        }
    }

    /// Number of columns.
    #[inline(always)]
    pub fn len(&self) -> usize {
        let rest = self.rest.iter().map(|word| word.count_ones() as usize);
        self.first.count_ones() as usize + rest.sum::<usize>()
    }

    /// Whether the set is empty.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.first == 0 && self.rest.iter().all(|word| *word == 0)
    }

    /// Iterates over the columns, ascending.
    #[inline(always)]
    pub fn iter(&self) -> ColumnIndexes<'_> {
        ColumnIndexes {
            left: self.first,
            base: 0,
            rest: &self.rest,
        }
    }
}

/// Iterator over the columns of a [`ColumnSet`], ascending.
#[derive(Clone, Debug)]
pub struct ColumnIndexes<'a> {
    left: u64,
    base: usize,
    rest: &'a [u64],
}

impl Iterator for ColumnIndexes<'_> {
    type Item = usize;

    #[inline(always)]
    fn next(&mut self) -> Option<usize> {
        while self.left == 0 {
            let (next, rest) = self.rest.split_first()?;
            (self.left, self.rest) = (*next, rest);
            self.base += 64;
        }
        let bit = self.left.trailing_zeros() as usize;
        self.left &= self.left - 1;
        Some(self.base + bit)
    }
}

impl FromIterator<usize> for ColumnSet {
    fn from_iter<I: IntoIterator<Item = usize>>(columns: I) -> ColumnSet {
        let mut set = ColumnSet::default();
        columns.into_iter().for_each(|index| set.insert(index));
        set
    }
}

/// Appends the subset `present` of `count` header columns. Must not be called if all are present, which a
/// flag indicates instead.
#[inline(always)]
pub fn write_subset(out: &mut Vec<u8>, count: usize, present: &ColumnSet) {
    if count < LIST_FORM_FROM {
        let missing = ((1u64 << count) - 1) & !present.first;
        return vint::write_unsigned(out, missing);
    }
    write_lists(out, count, present);
}

fn write_lists(out: &mut Vec<u8>, count: usize, present: &ColumnSet) {
    let present_count = present.len();
    let missing_count = count - present_count;
    out.put_uvint(missing_count as u64);
    if present_count < count / 2 {
        for index in present.iter() {
            out.put_uvint(index as u64);
        }
    } else {
        let mut next = 0;
        for index in present.iter().chain(std::iter::once(count)) {
            for missing in next..index {
                out.put_uvint(missing as u64);
            }
            next = index + 1;
        }
    }
}

#[cold]
fn short(at: usize) -> Error {
    Error::corrupt(
        "row.columns_subset",
        at as u64,
        "a vint",
        "the end of the row",
    )
}

#[cfg(test)]
mod tests {
    use compactor_testkit::Random;

    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|b| format!("{b:02X}")).collect()
    }

    fn written(count: usize, present: &[usize]) -> Vec<u8> {
        let mut out = Vec::new();
        write_subset(&mut out, count, &present.iter().copied().collect());
        out
    }

    #[test]
    fn bytes_of_cassandra() {
        assert_eq!(hex(&written(63, &[0, 62])), "FF3FFFFFFFFFFFFFFE");
        assert_eq!(hex(&written(63, &[])), "FF7FFFFFFFFFFFFFFF");
        assert_eq!(hex(&written(64, &[0, 63])), "3E003F");
        let all_but_three: Vec<usize> = (3..64).collect();
        assert_eq!(hex(&written(64, &all_but_three)), "03000102");
        assert_eq!(hex(&written(64, &[])), "40");
    }

    #[test]
    fn hostile_subsets_are_refused() {
        for bytes in [
            &[][..],
            &[0x41],
            &[0x3e, 0x05, 0x05],
            &[0x3e, 0x05, 0x40],
            &[0x3e, 0x05],
        ] {
            assert!(
                PresentColumns::parse(bytes, &mut 0, LIST_FORM_FROM).is_err(),
                "{bytes:x?}"
            );
        }
    }

    proptest::proptest! {
        /// A column set behaves like a set of numbers.
        #[test]
        fn sets(
            columns in proptest::collection::btree_set(0usize..300, 0..40),
            other in 0usize..300,
            bound in 0usize..300,
        ) {
            let mut set: ColumnSet = columns.iter().copied().collect();
            let listed: Vec<usize> = columns.iter().copied().collect();
            proptest::prop_assert_eq!(set.iter().collect::<Vec<_>>(), listed);
            proptest::prop_assert_eq!(set.len(), columns.len());
            proptest::prop_assert_eq!(set.is_empty(), columns.is_empty());
            proptest::prop_assert_eq!(set.contains(other), columns.contains(&other));
            set.retain(|column| column < bound);
            let kept: Vec<usize> = columns.range(..bound).copied().collect();
            proptest::prop_assert_eq!(set.iter().collect::<Vec<_>>(), kept);
            set.clear();
            proptest::prop_assert_eq!(set, ColumnSet::default());
        }

        #[test]
        fn round_trip(count in LIST_FORM_FROM..200, seed: u64, density in 0u64..101) {
            let mut random = Random::new(seed);
            let present: Vec<usize> = (0..count)
                .filter(|_| random.below(100) < density)
                .collect();
            if present.len() < count {
                let mut bytes = written(count, &present);
                let len = bytes.len();
                bytes.extend_from_slice(&[7; 3]);
                let mut pos = 0;
                let parsed = PresentColumns::parse(&bytes, &mut pos, count).unwrap();
                proptest::prop_assert_eq!(pos, len);
                proptest::prop_assert_eq!(parsed.remaining(), present.len());
                proptest::prop_assert_eq!(parsed.collect::<Vec<_>>(), present);
            }
        }
    }
}
