//! What SSTables beside a merge may remove from it.
//!
//! Source: `CompactionParams.TombstoneOption`.

/// What overlapping SSTables may remove from a merge (`provide_overlapping_tombstones`, and
/// `nodetool garbagecollect -g`). They are not written, and must stay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TombstoneOption {
    /// Nothing.
    #[default]
    None,
    /// What their deletions of partitions, ranges and rows cover.
    Row,
    /// What their cells and deletions of collections shadow, too.
    Cell,
}

impl TombstoneOption {
    /// By its name in a table's compaction options, in any case.
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
