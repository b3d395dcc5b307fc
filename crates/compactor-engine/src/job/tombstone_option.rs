//! Data that overlapping SSTables may remove from a merge.
//!
//! Source: `CompactionParams.TombstoneOption`.

/// Data that overlapping SSTables may remove from a merge (`provide_overlapping_tombstones`, and
/// `nodetool garbagecollect -g`). Those SSTables are not written, and must be kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TombstoneOption {
    /// Nothing.
    #[default]
    None,
    /// Data covered by their deletions of partitions, ranges and rows.
    Row,
    /// Also data shadowed by their cells and by deletions of collections.
    Cell,
}

impl TombstoneOption {
    /// Parses its name in a table's compaction options, ignoring case.
    pub fn from_name(name: &str) -> Option<TombstoneOption> {
        Some(match name.to_ascii_lowercase().as_str() {
            "none" => TombstoneOption::None,
            "row" => TombstoneOption::Row,
            "cell" => TombstoneOption::Cell,
            _ => return None,
        })
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            TombstoneOption::None => "none",
            TombstoneOption::Row => "row",
            TombstoneOption::Cell => "cell",
        }
    }
}
