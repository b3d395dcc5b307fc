//! Metadata that an output inherits from the `Statistics.db` of its input.

use std::path::Path;

use compactor::generate::Shape;
use compactor_sstable::descriptor::Descriptor;
use compactor_sstable::statistics::{CommitLogPosition, IntervalSet, Statistics, StatsMetadata};
use compactor_sstable::{Component, Version};

use super::salvaged::{chunk_offsets, generated, scrubbed};

const HOST: [u8; 16] = [7; 16];
const SESSION: [u8; 16] = [9; 16];

fn intervals() -> IntervalSet {
    let at = |position| CommitLogPosition {
        segment_id: 1,
        position,
    };
    IntervalSet::single(at(10), at(20))
}

fn stats_of(data: &Path) -> StatsMetadata {
    let descriptor = Descriptor::parse(data).unwrap().descriptor;
    let bytes = std::fs::read(descriptor.path(Component::Statistics)).unwrap();
    Statistics::parse(&bytes, descriptor.version).unwrap().stats
}

/// Otherwise it would be marked as repaired when the session ends, and a node would not replay what is lost.
#[test]
fn an_output_that_lacks_rows_is_neither_repaired_nor_in_the_commit_log() {
    type Edit = fn(&mut StatsMetadata);
    let edits: [Edit; 3] = [
        |stats| stats.repaired_at = 1_700_000_000_000,
        |stats| stats.pending_repair = Some(SESSION),
        |stats| (stats.pending_repair, stats.is_transient) = (Some(SESSION), true),
    ];
    for edit in edits {
        let copy = generated(Shape::KeyValue, 2000, Version::Oa, Some(4096));
        copy.edit_statistics(|statistics| {
            let stats = &mut statistics.stats;
            edit(stats);
            stats.level = 3;
            stats.originating_host_id = Some(HOST);
            stats.commit_log_intervals = intervals();
        });
        let repair_state = |s: &StatsMetadata| (s.repaired_at, s.pending_repair, s.is_transient);

        let whole = scrubbed(&copy.data());
        let (before, kept) = (
            stats_of(&copy.data()),
            stats_of(whole.output.as_deref().unwrap()),
        );
        assert!(!whole.report.is_repair_state_reset);
        assert_eq!(repair_state(&kept), repair_state(&before));
        assert_eq!(kept.commit_log_intervals, intervals());

        copy.flip(Component::Data, chunk_offsets(&copy, Version::Oa)[7] + 9, 2);
        let cut = scrubbed(&copy.data());
        let kept = stats_of(cut.output.as_deref().unwrap());
        assert!(cut.report.is_lossy() && cut.report.is_repair_state_reset);
        assert_eq!(repair_state(&kept), (0, None, false));
        assert_eq!(kept.commit_log_intervals, IntervalSet::default());
        assert_eq!((kept.level, kept.originating_host_id), (3, Some(HOST)));
    }
}
