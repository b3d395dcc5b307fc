//! Repair state of SSTables. Data of different repair states must not be mixed: the merged SSTable would lose
//! its state or, worse, claim a state that part of its data does not have.
//!
//! Source: `CompactionStrategyManager`, `CompactionTask.getPendingRepair`.

use std::fmt;

use compactor_sstable::statistics::StatsMetadata;
use compactor_sstable::types::CqlType;

/// Repair state that SSTables must share to be merged with one another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RepairGroup {
    /// Id of an incremental repair session that has not ended.
    pub pending_repair: Option<[u8; 16]>,
    /// Whether a transient replica holds it until the repair ends.
    pub is_transient: bool,
    /// Whether a completed incremental repair covered it, at any time.
    pub is_repaired: bool,
}

impl RepairGroup {
    /// Returns the group of an SSTable with these statistics.
    pub fn of(stats: &StatsMetadata) -> RepairGroup {
        RepairGroup {
            pending_repair: stats.pending_repair,
            is_transient: stats.is_transient,
            is_repaired: stats.repaired_at != 0,
        }
    }
}

impl fmt::Display for RepairGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_transient {
            f.write_str("transient, ")?;
        }
        match (&self.pending_repair, self.is_repaired) {
            (Some(session), _) => {
                write!(f, "in pending repair {}", CqlType::Uuid.describe(session))
            }
            (None, true) => f.write_str("repaired"),
            (None, false) => f.write_str("unrepaired"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_displayed() {
        let repaired = RepairGroup {
            is_repaired: true,
            ..RepairGroup::default()
        };
        let transient = RepairGroup {
            pending_repair: Some(0x5b925f90_a4c0_11ef_8b25_0123456789ab_u128.to_be_bytes()),
            is_transient: true,
            is_repaired: false,
        };
        assert_eq!(RepairGroup::default().to_string(), "unrepaired");
        assert_eq!(repaired.to_string(), "repaired");
        assert_eq!(
            transient.to_string(),
            "transient, in pending repair 5b925f90-a4c0-11ef-8b25-0123456789ab"
        );
    }
}
