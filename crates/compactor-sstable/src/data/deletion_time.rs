//! Deletion times: the two timestamps of a tombstone.
//!
//! Source: `DeletionTime`, its `Serializer` (versions with unsigned deletion times) and `LegacySerializer`
//! (older ones).

use crate::byte_reader::ByteReader;
use crate::byte_sink::ByteSink;
use crate::error::{Error, Result};
use crate::version::Version;

/// Local deletion time of data that is not deleted, the same value as in Cassandra's memory.
pub const NO_DELETION_TIME: i64 = i64::MAX;
/// Maximum valid local deletion time, seconds since 1970 (in the year 2106).
pub const MAX_DELETION_TIME: i64 = 4_294_967_293;
/// Decoded value of an overflowed or negative local deletion time.
pub const INVALID_DELETION_TIME: i64 = 4_294_967_294;

const LIVE_BYTE: u8 = 0x80;

/// Time of a deletion, by the writer's clock and by the node's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeletionTime {
    /// Data with a timestamp up to and including this one is deleted. Usually microseconds since 1970;
    /// `i64::MIN` in [`DeletionTime::LIVE`].
    pub marked_for_delete_at: i64,
    /// Local time of the node that wrote the deletion, seconds since 1970, from which gc_grace is counted.
    pub local_deletion_time: i64,
}

impl DeletionTime {
    /// Deletion time of live data.
    pub const LIVE: DeletionTime = DeletionTime {
        marked_for_delete_at: i64::MIN,
        local_deletion_time: NO_DELETION_TIME,
    };

    /// Creates a deletion read from a row or marker: a local deletion time out of range becomes
    /// [`INVALID_DELETION_TIME`] (`DeletionTime.build`).
    #[inline]
    pub fn build(marked_for_delete_at: i64, local_deletion_time: i64) -> DeletionTime {
        let valid = (0..=MAX_DELETION_TIME).contains(&local_deletion_time);
        DeletionTime {
            marked_for_delete_at,
            local_deletion_time: if valid {
                local_deletion_time
            } else {
                INVALID_DELETION_TIME
            },
        }
    }

    /// Whether nothing is deleted.
    #[inline]
    pub fn is_live(&self) -> bool {
        *self == DeletionTime::LIVE
    }

    /// Returns false for a local deletion time that is negative or overflowed (`DeletionTime.validate`).
    #[inline]
    pub fn is_valid(&self) -> bool {
        self.is_live()
            || !(self.local_deletion_time < 0 || self.local_deletion_time == INVALID_DELETION_TIME)
    }

    /// Whether this deletion deletes data written at `timestamp`.
    #[inline]
    pub fn deletes(&self, timestamp: i64) -> bool {
        timestamp <= self.marked_for_delete_at
    }

    /// Whether this deletion is newer: its timestamp is greater, or equal with a greater local deletion time.
    #[inline]
    pub fn supersedes(&self, other: &DeletionTime) -> bool {
        (self.marked_for_delete_at, self.local_deletion_time)
            > (other.marked_for_delete_at, other.local_deletion_time)
    }

    /// Returns the newer of the two; `self` if they are equal.
    #[inline]
    #[must_use]
    pub fn max(self, other: DeletionTime) -> DeletionTime {
        if other.supersedes(&self) { other } else { self }
    }

    /// Reads the partition-level form.
    ///
    /// Unsigned versions: `80` if live, otherwise i64 marked-for-delete-at and u32 local deletion time. Older
    /// versions: i32 local deletion time, then i64 marked-for-delete-at.
    ///
    /// # Errors
    /// Corruption if bytes are missing or the live byte has other bits.
    pub fn read(reader: &mut ByteReader<'_>, version: Version) -> Result<DeletionTime> {
        const NAME: &str = "deletion_time";
        if !version.has_uint_deletion_time() {
            let local_deletion_time = reader.i32(NAME)?;
            let marked_for_delete_at = reader.i64(NAME)?;
            return Ok(Self::from_legacy(marked_for_delete_at, local_deletion_time));
        }
        let at = reader.offset();
        let first = reader.u8(NAME)?;
        if first & LIVE_BYTE != 0 {
            return match first {
                LIVE_BYTE => Ok(DeletionTime::LIVE),
                other => Err(bad_live_byte(at, other)),
            };
        }
        let mut marked = [0u8; 8];
        marked[0] = first;
        marked[1..].copy_from_slice(&reader.array::<7>(NAME)?);
        let local = reader.u32(NAME)?;
        Ok(DeletionTime {
            marked_for_delete_at: i64::from_be_bytes(marked),
            local_deletion_time: from_unsigned(local),
        })
    }

    /// Length of the partition-level form that starts with `first`.
    #[inline]
    pub fn encoded_len(first: u8, version: Version) -> usize {
        if version.has_uint_deletion_time() && first & LIVE_BYTE != 0 {
            1
        } else {
            12
        }
    }

    fn from_legacy(marked_for_delete_at: i64, local_deletion_time: i32) -> DeletionTime {
        if marked_for_delete_at == i64::MIN && local_deletion_time == i32::MAX {
            DeletionTime::LIVE
        } else {
            DeletionTime::build(marked_for_delete_at, i64::from(local_deletion_time))
        }
    }

    /// Appends the partition-level form.
    pub fn write(&self, out: &mut Vec<u8>, version: Version) {
        if !version.has_uint_deletion_time() {
            out.put_i32(to_signed(self.local_deletion_time));
            out.put_i64(self.marked_for_delete_at);
        } else if self.is_live() {
            out.put_u8(LIVE_BYTE);
        } else {
            out.put_i64(self.marked_for_delete_at);
            out.put_u32(to_unsigned(self.local_deletion_time));
        }
    }
}

#[cold]
fn bad_live_byte(at: u64, found: u8) -> Error {
    Error::corrupt(
        "deletion_time",
        at,
        "80 for a live partition or a positive timestamp",
        format!("{found:02x}"),
    )
}

/// Local deletion time in versions without unsigned ones.
pub(crate) fn to_signed(value: i64) -> i32 {
    match value {
        NO_DELETION_TIME => i32::MAX,
        seconds => seconds.min(i64::from(i32::MAX) - 1) as i32,
    }
}

/// `Cell.deletionTimeUnsignedIntegerToLong`.
#[inline]
pub fn from_unsigned(value: u32) -> i64 {
    if value == u32::MAX {
        NO_DELETION_TIME
    } else {
        i64::from(value)
    }
}

/// `Cell.deletionTimeLongToUnsignedInteger`.
#[inline]
pub fn to_unsigned(value: i64) -> u32 {
    if value == NO_DELETION_TIME {
        u32::MAX
    } else {
        value as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_both_generations() {
        let some = DeletionTime {
            marked_for_delete_at: 0x0102,
            local_deletion_time: 0x1000_0000,
        };
        for (version, deletion, bytes) in [
            (Version::Oa, DeletionTime::LIVE, "80"),
            (Version::Nb, DeletionTime::LIVE, "7fffffff8000000000000000"),
            (Version::Oa, some, "000000000000010210000000"),
            (Version::Nb, some, "100000000000000000000102"),
        ] {
            let mut out = Vec::new();
            deletion.write(&mut out, version);
            let hex: String = out.iter().map(|b| format!("{b:02x}")).collect();
            assert_eq!(hex, bytes);
            assert_eq!(DeletionTime::encoded_len(out[0], version), out.len());
            assert_eq!(
                DeletionTime::read(&mut ByteReader::new(&out), version).unwrap(),
                deletion
            );
        }
        assert!(DeletionTime::read(&mut ByteReader::new(&[0x81]), Version::Oa).is_err());
    }

    #[test]
    fn far_future_is_capped_in_old_versions() {
        let far = DeletionTime {
            marked_for_delete_at: 1,
            local_deletion_time: MAX_DELETION_TIME,
        };
        let mut out = Vec::new();
        far.write(&mut out, Version::Nb);
        let read = DeletionTime::read(&mut ByteReader::new(&out), Version::Nb).unwrap();
        assert_eq!(read.local_deletion_time, 2_147_483_646);
    }

    #[test]
    fn order_of_deletions() {
        let a = DeletionTime {
            marked_for_delete_at: 5,
            local_deletion_time: 10,
        };
        let b = DeletionTime {
            marked_for_delete_at: 5,
            local_deletion_time: 11,
        };
        assert!(b.supersedes(&a) && !a.supersedes(&b) && !a.supersedes(&a));
        assert!(a.supersedes(&DeletionTime::LIVE));
        assert!(a.deletes(5) && !a.deletes(6));
        assert_eq!(a.max(b), b);
    }
}
