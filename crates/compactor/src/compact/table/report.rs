//! Report of a compaction.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use compactor_strategy::CompactionParams;

use super::TableState;
use crate::compact::replacements::ReplacementId;
use crate::compact::report::{CompactReport, CompactedSstable, Replacement};

impl TableState {
    /// Creates the report.
    pub(in crate::compact) fn report(&self, elapsed: Duration) -> CompactReport {
        let mut report = self.report.clone();
        let class = self.params.as_ref().map(CompactionParams::class);
        report.strategy = class.unwrap_or("major").to_owned();
        let mut outputs_of: BTreeMap<ReplacementId, Vec<PathBuf>> = BTreeMap::new();
        for sstable in self.live.values() {
            let (Some(output), Some(set)) = (&sstable.output, sstable.replaces) else {
                continue;
            };
            let set = self.replacements.current(set);
            let outputs = outputs_of.entry(set).or_default();
            outputs.push(output.data_path.clone());
            report.outputs.push(CompactedSstable {
                sstable: output.clone(),
                repair: sstable.group.to_string(),
                level: sstable.level,
            });
        }
        for (set, inputs) in self.replacements.iter() {
            match outputs_of.remove(&set) {
                None => report.gone.extend(inputs.iter().cloned()),
                Some(outputs) => report.replacements.push(Replacement {
                    outputs,
                    replaces: inputs.to_vec(),
                }),
            }
        }
        report.untouched = self.untouched();
        let with_ttl = self.live.values();
        let with_ttl = with_ttl.filter(|live| live.is_input() && live.may_have_ttl);
        let with_ttl = with_ttl.count();
        if self.strips_ttl && with_ttl > 0 {
            report.warnings.insert(format!(
                "{with_ttl} of the SSTables that stay as they are may have data with a TTL, which wins over \
                 copies without"
            ));
        }
        report.sstables_after = self.live.len();
        report.output_bytes = report.outputs.iter().map(|o| o.sstable.bytes).sum();
        report.elapsed_s = elapsed.as_secs_f64();
        report
    }
}
