//! Tokens, and positions of partitions in the ring.

/// Token of a partition, as a number.
///
/// Murmur3Partitioner: the `long`. RandomPartitioner: the `BigInteger`. ByteOrderedPartitioner: the first
/// sixteen bytes of the key as an unsigned number, halved, so tokens that differ later count as equal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub i128);

/// Position of a partition: ordered by token, then by the unsigned bytes of its key (`DecoratedKey`).
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// Token of the key.
    pub token: Token,
    /// Bytes of the key. Only needed to order partitions with equal tokens; a simulation leaves it empty.
    pub key: Box<[u8]>,
}

impl Position {
    /// Position of a key.
    pub fn new(token: Token, key: &[u8]) -> Position {
        Position {
            token,
            key: key.into(),
        }
    }
}

/// Ranges from a first to a last place, ascending, with overlapping ones joined.
pub(crate) fn joined<T: Copy + Ord>(ranges: impl Iterator<Item = (T, T)>) -> Vec<(T, T)> {
    let mut ranges: Vec<(T, T)> = ranges.collect();
    ranges.sort_unstable();
    ranges.dedup_by(|next, before| {
        let overlaps = next.0 <= before.1;
        if overlaps {
            before.1 = before.1.max(next.1);
        }
        overlaps
    });
    ranges
}

/// Whether one of some ranges, ascending and disjoint, has a place from a first to a last one, inclusive.
pub(crate) fn has_overlap<T: Ord>(ranges: &[(T, T)], first: &T, last: &T) -> bool {
    // The first range that does not end before.
    let place = ranges.partition_point(|(_, end)| end < first);
    ranges.get(place).is_some_and(|(start, _)| start <= last)
}

impl From<Token> for Position {
    /// Position of a token whose key is not known.
    fn from(token: Token) -> Position {
        Position::new(token, &[])
    }
}
