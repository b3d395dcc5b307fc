//! Contradictions between the data of a scrubbed SSTable and its `Statistics.db`.

use compactor_engine::read::RowCounts;
use compactor_sstable::Component;
use compactor_sstable::statistics::MetadataCollector;

use super::stored::Stored;
use crate::verify::Severity;
use crate::verify::finding::{Findings, Location};
use crate::verify::statistics_consistency::{self, StatisticsConsistency};

/// Reports statistics that the data contradicts, as a merge does. `seen` is the number of rows and their statistics, if
/// all have been read.
pub(super) fn contradicts_statistics(
    stored: &Stored,
    seen: Option<(u64, &MetadataCollector)>,
    findings: &Findings,
) -> bool {
    let (version, stats) = (
        stored.input.descriptor.version,
        &stored.input.statistics.stats,
    );
    let ratio = statistics_consistency::ratio_of(stored.chunks());
    let stated_rows = u64::try_from(stats.total_rows).unwrap_or(0);
    let rows = RowCounts {
        rows: seen.map_or(stated_rows, |(rows, _)| rows),
        empty_static_rows: 0,
    };
    let mismatches = StatisticsConsistency::of(version, stats, ratio).check(rows);
    let mut is_contradicted = false;
    let mut report = |field: &str, expected: String, found: String| {
        is_contradicted = true;
        let place = Location::of(Component::Statistics);
        findings.damage(place, &format!("stats.{field}"), expected, found);
    };
    for m in mismatches {
        if m.severity == Severity::Damage {
            report(m.field, m.expected, m.found);
        }
    }
    if let Some(timestamps) = seen.and_then(|(_, collector)| collector.timestamps()) {
        let (least, greatest) = (*timestamps.start(), *timestamps.end());
        if least < stats.min_timestamp {
            let expected = format!("at most {least}, which the data has");
            report("min_timestamp", expected, stats.min_timestamp.to_string());
        }
        if greatest > stats.max_timestamp {
            let expected = format!("at least {greatest}, which the data has");
            report("max_timestamp", expected, stats.max_timestamp.to_string());
        }
    }
    is_contradicted
}
