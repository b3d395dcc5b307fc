//! Format versions as sets of features.
//!
//! Source: `BigFormat.BigVersion`, `BtiFormat.BtiVersion`. Features are queried by name, never by comparing
//! letters: `me` has the host id but the later `na` does not.

use std::fmt;
use std::str::FromStr;

/// Format of the index files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Format {
    /// `Index.db` and `Summary.db`.
    Big,
    /// `Partitions.db` and `Rows.db` tries.
    Bti,
}

impl Format {
    /// The third token of a file name.
    pub fn name(self) -> &'static str {
        match self {
            Format::Big => "big",
            Format::Bti => "bti",
        }
    }
}

/// A version known to this project. Those of one format ascend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(
    missing_docs,
    reason = "the names are Cassandra's own; the table is in the module's source"
)]
pub enum Version {
    Ma,
    Mb,
    Mc,
    Md,
    Me,
    Na,
    Nb,
    Oa,
    Pa,
    Da,
    Ea,
}

impl Version {
    /// All versions, oldest first, BIG before BTI.
    pub const ALL: [Version; 11] = {
        use Version::{Da, Ea, Ma, Mb, Mc, Md, Me, Na, Nb, Oa, Pa};
        [Ma, Mb, Mc, Md, Me, Na, Nb, Oa, Pa, Da, Ea]
    };

    /// The two letters used in file names.
    pub fn name(self) -> &'static str {
        const NAMES: [&str; 11] = [
            "ma", "mb", "mc", "md", "me", "na", "nb", "oa", "pa", "da", "ea",
        ];
        NAMES[self as usize]
    }

    /// Format of the index files.
    pub fn format(self) -> Format {
        match self {
            Version::Da | Version::Ea => Format::Bti,
            _ => Format::Big,
        }
    }

    /// Returns the version to write in `format` for files of this version. 5.0 writes `oa` and `da`, 6.0 `pa`
    /// and `ea`. For older ones, `nb` is the newest in BIG; the first in BTI is `da`.
    pub fn written_as(self, format: Format) -> Version {
        match (self, format) {
            (Version::Pa | Version::Ea, Format::Big) => Version::Pa,
            (Version::Oa | Version::Da, Format::Big) => Version::Oa,
            (_, Format::Big) => Version::Nb,
            (Version::Pa | Version::Ea, Format::Bti) => Version::Ea,
            (_, Format::Bti) => Version::Da,
        }
    }

    /// STATS contains the commit log lower bound.
    pub fn has_commit_log_lower_bound(self) -> bool {
        self >= Version::Mb
    }
    /// STATS contains commit log intervals.
    pub fn has_commit_log_intervals(self) -> bool {
        self >= Version::Mc
    }
    /// STATS contains two lists of clustering values that can be trusted (CASSANDRA-14861).
    pub fn has_accurate_min_max(self) -> bool {
        self >= Version::Md && !self.has_improved_min_max()
    }
    /// STATS contains clustering types and the covered slice.
    pub fn has_improved_min_max(self) -> bool {
        self >= Version::Oa
    }
    /// STATS contains the originating host id. `na` does not have it, although `me` does.
    pub fn has_originating_host_id(self) -> bool {
        self == Version::Me || self >= Version::Nb
    }
    /// CompressionInfo contains the maximum compressed length; chunks may be stored raw.
    pub fn has_max_compressed_length(self) -> bool {
        self >= Version::Na
    }
    /// STATS contains pendingRepair and isTransient.
    pub fn has_pending_repair(self) -> bool {
        self >= Version::Na
    }
    /// Live rows without cells count in the extremes of local deletion times.
    pub fn has_live_rows_in_extremes(self) -> bool {
        self >= Version::Mb
    }
    /// Statistics.db has checksums.
    pub fn has_metadata_checksum(self) -> bool {
        self >= Version::Na
    }
    /// The header's minima of local deletion times and TTLs may be vints of 64 bits, as written by ScyllaDB,
    /// of which Cassandra's readers of that time use the low 32.
    pub fn has_wide_encoding_stats(self) -> bool {
        self < Version::Na
    }
    /// The header may list columns in an order other than that of rows, as ScyllaDB did.
    pub fn may_list_columns_in_any_order(self) -> bool {
        self < Version::Na
    }
    /// The header may have frozen user types without `FrozenType`, as Cassandra 3.0 wrote them (CASSANDRA-15035).
    pub fn may_omit_frozen_type(self) -> bool {
        self < Version::Na
    }
    /// Summary.db may omit its size at full sampling, as ScyllaDB does: Cassandra needs it only to reduce a
    /// summary.
    pub fn may_lack_summary_size(self) -> bool {
        self < Version::Na
    }
    /// Filter.db stores big-endian words instead of bytes.
    pub fn has_old_bloom_filter(self) -> bool {
        self < Version::Na
    }
    /// STATS contains whether partition deletions exist, first and last key, and token space coverage.
    pub fn has_key_range(self) -> bool {
        self >= Version::Oa
    }
    /// Local deletion times are unsigned 32-bit; partition deletions take one byte when live.
    pub fn has_uint_deletion_time(self) -> bool {
        self >= Version::Oa
    }
    /// A compression dictionary may follow CompressionInfo's offsets.
    pub fn has_compression_dictionary(self) -> bool {
        matches!(self, Version::Pa | Version::Ea)
    }
    /// Maximum valid local deletion time, seconds since 1970.
    pub fn max_deletion_time(self) -> i64 {
        if self.has_uint_deletion_time() {
            4_294_967_293
        } else {
            2_147_483_646
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Version {
    type Err = UnknownVersion;

    fn from_str(text: &str) -> Result<Version, UnknownVersion> {
        Version::ALL
            .into_iter()
            .find(|v| v.name() == text)
            .ok_or_else(|| UnknownVersion(text.to_owned()))
    }
}

/// Two letters that are not a known version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown SSTable version {0:?}; known are ma to me, na, nb, oa, pa, da, ea")]
pub struct UnknownVersion(pub String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn na_has_no_host_id() {
        let with: Vec<_> = Version::ALL
            .into_iter()
            .filter(|v| v.has_originating_host_id())
            .collect();
        assert_eq!(
            with,
            [
                Version::Me,
                Version::Nb,
                Version::Oa,
                Version::Pa,
                Version::Da,
                Version::Ea
            ]
        );
    }
}
