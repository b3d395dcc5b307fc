//! First and last partition of an SSTable in ring order.

use compactor_io::{Io, ReadMode};
use compactor_sstable::Component;
use compactor_sstable::Error as FormatError;
use compactor_sstable::partitioner::{Partitioner, Position};

use crate::error::{Error, Result};
use crate::input::index_heads::IndexHeads;
use crate::input::sstable::InputSstable;

/// Position in the order of partitions: token, then key.
pub type DecoratedKey<'a> = (Position, &'a [u8]);

/// Bytes of `Index.db` per read.
const INDEX_STEP: usize = 256 << 10;

/// First and last partition of an SSTable (`SSTableReader.getFirst`, `getLast`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRange {
    first: (Position, Vec<u8>),
    last: (Position, Vec<u8>),
}

impl KeyRange {
    /// Reads the range of an SSTable: from `Statistics.db` since `oa`, from `Summary.db` before. If that is
    /// missing or damaged, reads all of `Index.db`, from which Cassandra rebuilds `Summary.db`.
    ///
    /// # Errors
    /// A component that cannot be read or is damaged.
    pub fn of(io: &Io, input: &InputSstable, mode: ReadMode) -> Result<KeyRange> {
        let version = input.descriptor.version;
        let stats = &input.statistics.stats;
        let (first, last) = match (&stats.first_key, &stats.last_key) {
            (Some(first), Some(last)) if version.has_key_range() => (first.clone(), last.clone()),
            _ => match input.summary(io, mode)? {
                Some(summary) => (summary.first_key, summary.last_key),
                None => first_and_last_of_index(io, input, mode)?,
            },
        };
        Ok(KeyRange::new(input.partitioner, first, last))
    }

    pub(crate) fn new(partitioner: Partitioner, first: Vec<u8>, last: Vec<u8>) -> KeyRange {
        let with_position = |key: Vec<u8>| (partitioner.position(&key), key);
        KeyRange {
            first: with_position(first),
            last: with_position(last),
        }
    }

    /// First partition.
    #[must_use]
    pub fn first(&self) -> DecoratedKey<'_> {
        (self.first.0, &self.first.1)
    }

    /// Last partition.
    #[must_use]
    pub fn last(&self) -> DecoratedKey<'_> {
        (self.last.0, &self.last.1)
    }

    /// Whether the SSTable may contain the partition.
    #[must_use]
    pub fn contains(&self, place: DecoratedKey<'_>) -> bool {
        self.first() <= place && place <= self.last()
    }

    /// Whether a partition may be in both ranges.
    #[must_use]
    pub fn overlaps(&self, other: &KeyRange) -> bool {
        self.first() <= other.last() && other.first() <= self.last()
    }
}

fn first_and_last_of_index(
    io: &Io,
    input: &InputSstable,
    mode: ReadMode,
) -> Result<(Vec<u8>, Vec<u8>)> {
    let index = io.open(&input.descriptor.path(Component::Index), mode)?;
    let mut heads = IndexHeads::at(&index, 0, INDEX_STEP);
    let Some(first) = heads.next_head()?.map(|head| head.key.to_owned()) else {
        let error = FormatError::corrupt("index", 0, "an entry of a partition", "an empty file");
        return Err(Error::Format(
            error.with_file(index.path(), Component::Index),
        ));
    };
    let mut last = first.clone();
    while let Some(head) = heads.next_head()? {
        last.clear();
        last.extend_from_slice(head.key);
    }
    Ok((first, last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_common_key_is_an_overlap() {
        let range = |first: &[u8], last: &[u8]| {
            KeyRange::new(Partitioner::ByteOrdered, first.to_vec(), last.to_vec())
        };
        let middle = range(b"c", b"e");
        for (first, last, meets) in [
            ("a", "b", false),
            ("a", "c", true),
            ("a", "f", true),
            ("d", "d", true),
            ("e", "f", true),
            ("ea", "f", false),
            ("f", "g", false),
        ] {
            let other = range(first.as_bytes(), last.as_bytes());
            assert_eq!(middle.overlaps(&other), meets, "{first}..{last}");
            assert_eq!(other.overlaps(&middle), meets, "{first}..{last}");
        }
    }
}
