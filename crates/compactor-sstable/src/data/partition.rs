//! Partition header: key and partition deletion.

use crate::byte_reader::ByteReader;
use crate::data::deletion_time::DeletionTime;
use crate::data::parse::{Parse, Stop};
use crate::version::Version;

/// Positions of the parts of a partition header, relative to its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionHead {
    /// Length of the partition key; it begins after its two length bytes.
    pub key_len: usize,
    /// Partition deletion.
    pub deletion: DeletionTime,
    /// Length of the header.
    pub len: usize,
}

impl PartitionHead {
    /// Parses the header of the partition at the start of `bytes`.
    ///
    /// # Errors
    /// [`Stop::Incomplete`] if the bytes end first.
    #[inline]
    pub fn parse(bytes: &[u8], version: Version) -> Parse<PartitionHead> {
        let Some(&[high, low]) = bytes.get(..2) else {
            return Err(Stop::Incomplete);
        };
        let key_len = usize::from(u16::from_be_bytes([high, low]));
        let deletion_at = 2 + key_len;
        let first = *bytes.get(deletion_at).ok_or(Stop::Incomplete)?;
        let len = deletion_at + DeletionTime::encoded_len(first, version);
        let deletion = bytes.get(deletion_at..len).ok_or(Stop::Incomplete)?;
        let mut reader = ByteReader::with_base(deletion, deletion_at as u64);
        let deletion = DeletionTime::read(&mut reader, version)?;
        Ok(PartitionHead {
            key_len,
            deletion,
            len,
        })
    }

    /// Returns the partition key in `bytes`, the parsed slice.
    #[inline]
    pub fn key<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        bytes.get(2..2 + self.key_len).unwrap_or(&[])
    }
}
