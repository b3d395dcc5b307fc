//! The outcome of a simulation that has ended.

use compactor_strategy::StrategyOptions;
use compactor_strategy::model::LeveledModel;

use super::Simulation;
use crate::measure::{level_count, levels};
use crate::outcome::{End, Level, Model, Outcome, Sample};
use crate::workload::MIB;

/// Number of partitions below which flushes overlap noticeably less than they would.
const FEW_PARTITIONS: f64 = 100.0;

impl Simulation<'_> {
    pub(super) fn outcome(self) -> Outcome {
        let by_level = self.levels();
        let meter = &self.meter;
        let bytes = self.table.bytes();
        let live_bytes = self.live_bytes();
        let level_bytes = by_level.iter().map(|level| (level.level, level.bytes));
        let all_written = meter.flushed_bytes + meter.written_bytes;
        let late = self.late();
        let mean = |value: &dyn Fn(&Sample) -> f64| {
            late.iter().map(value).sum::<f64>() / late.len().max(1) as f64
        };
        let per_s = |bytes: f64| bytes / self.now_s / MIB;
        let pending = self.samples.iter().map(|sample| sample.pending_tasks);
        Outcome {
            strategy: self.setup.strategy.class().to_owned(),
            duration_s: self.now_s,
            end: self.end,
            write_mb_per_s: per_s(all_written),
            late_write_mb_per_s: mean(&|sample| sample.write_bytes_per_s) / MIB,
            read_mb_per_s: per_s(meter.read_bytes),
            write_amplification: all_written / meter.flushed_bytes,
            levels: level_count(&level_bytes.collect(), &self.setup.strategy),
            dataset_bytes: bytes,
            live_bytes,
            space_amplification: bytes as f64 / live_bytes,
            greatest_bytes: meter.greatest_bytes,
            greatest_temporary_bytes: meter.greatest_temporary_bytes,
            sstables: self.table.len(),
            greatest_sstables: meter.greatest_sstables,
            sstables_per_point_read: mean(&|sample| sample.sstables_per_point_read),
            sstables_per_range_read: mean(&|sample| sample.sstables_per_range_read),
            pending_tasks: pending.clone().next_back().unwrap_or(0),
            greatest_pending_tasks: pending.max().unwrap_or(0),
            flushed_bytes: meter.flushed_bytes,
            compacted_bytes: meter.written_bytes,
            compactions: meter.compactions,
            model: self.model(live_bytes),
            caveats: self.caveats(),
            by_level,
            samples: self.samples,
        }
    }

    /// Samples of the second half of the time.
    fn late(&self) -> &[Sample] {
        let from = self.samples.len() / 2;
        self.samples.get(from..).unwrap_or_default()
    }

    fn levels(&self) -> Vec<Level> {
        let mut by_level = levels(&self.table);
        for (&level, &written) in &self.meter.by_level {
            let level = Level::among(&mut by_level, level);
            level.written_bytes = written;
            level.write_amplification = written / self.meter.flushed_bytes;
        }
        by_level
    }

    /// Prediction of the closed formula for the rows that exist.
    fn model(&self, live_bytes: f64) -> Option<Model> {
        let StrategyOptions::Leveled(options) = &self.setup.strategy.strategy else {
            return None;
        };
        let workload = &self.setup.workload;
        let model = LeveledModel {
            data_bytes: live_bytes,
            sstable_bytes: options.sizes.sstable_bytes() as f64,
            fanout: options.sizes.fanout(),
            flush_bytes: workload.flush_bytes,
        };
        let stored_per_s = workload.ingest_bytes_per_s * workload.compression_ratio;
        let figures = Model {
            write_mb_per_s: model.writes_per_byte() * stored_per_s / MIB,
            levels: model.levels(),
        };
        // Less than an SSTable, or a fan-out of one, is beyond the formula.
        let is_sound = figures.levels.is_finite() && figures.levels > 0.0;
        is_sound.then_some(figures)
    }

    fn caveats(&self) -> Vec<String> {
        let mut caveats = Vec::new();
        if self.end == End::Overloaded {
            let (time, unit) = match self.now_s / 3600.0 {
                hours if hours < 48.0 => (hours, "hours"),
                hours => (hours / 24.0, "days"),
            };
            caveats.push(format!(
                "compaction falls behind: the simulation ended after {time:.1} {unit} with {} SSTables",
                self.table.len()
            ));
        }
        let workload = &self.setup.workload;
        let rows = workload.existing_rows(self.now_s);
        let is_small = rows / workload.rows_per_partition() < FEW_PARTITIONS;
        if is_small && self.setup.initial.is_empty() {
            caveats.push(
                "few partitions: their tokens are random in each flush, so SSTables overlap less than in a node"
                    .to_owned(),
            );
        }
        if !self.setup.initial.is_empty() {
            caveats.push(
                "rows of the initial SSTables are estimated from their bytes, and none of them is updated"
                    .to_owned(),
            );
        }
        caveats
    }
}
