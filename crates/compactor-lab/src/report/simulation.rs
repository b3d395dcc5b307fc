//! Report of simulated compactions: one table of all simulations, and charts over time.

mod charts;

use compactor_simulate::Outcome;
use compactor_simulate::outcome::Level;
use serde::Serialize;

use super::document::{Block, Document, Facts, Section, Table, cell};
use super::units::{bytes, seconds, significant};

/// A simulation with its name.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Run {
    /// Name: the strategy, and what distinguishes it from others.
    pub name: String,
    /// Value of the option that is varied, if it is a number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// Result.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// Report of simulations of the same workload. `varied`: the option whose values they have.
pub fn document(runs: &[Run], varied: Option<&str>, facts: Facts) -> Document {
    let mut blocks = vec![
        Block::Table(writes(runs)),
        Block::Table(reads_and_room(runs)),
    ];
    blocks.extend(varied.and_then(|name| charts::by_value(runs, name)));
    blocks.extend(charts::over_time(runs));
    for run in runs {
        if !run.outcome.caveats.is_empty() {
            let texts = run.outcome.caveats.iter();
            let texts = texts.map(|text| format!("{}: {text}", run.name)).collect();
            blocks.push(Block::Caveats("Simulation", texts));
        }
    }
    blocks.extend(runs.iter().map(|run| Block::Table(levels(run))));
    Document {
        title: "Simulated compactions".to_owned(),
        heading: "Simulated compactions",
        introduction: "A table over time, compacted as a node would: what is written, how many SSTables a read \
            needs, and how much room is taken.",
        sections: vec![Section {
            facts,
            blocks,
            ..Section::default()
        }],
    }
}

/// A simulation, by its name.
type Row<'a> = (&'a str, &'a Outcome);

fn writes(runs: &[Run]) -> Table {
    Table::new(
        "Writes: MB/s by flushes and compactions together (1 MB = 2^20 bytes), over all of the time and over its \
         second half; MB/s that compactions read; bytes written per flushed byte; pending compactions at the end, and \
         their maximum",
        runs.iter().map(|run| (run.name.as_str(), &run.outcome)),
        &[
            ("", &|(name, _): &Row<'_>| (*name).to_owned()),
            ("written", &|(_, of)| significant(of.write_mb_per_s)),
            ("late", &|(_, of)| significant(of.late_write_mb_per_s)),
            ("read", &|(_, of)| significant(of.read_mb_per_s)),
            ("amplification", &|(_, of)| {
                significant(of.write_amplification)
            }),
            ("model", &|(_, of)| {
                cell(of.model, |model| significant(model.write_mb_per_s))
            }),
            ("pending", &|(_, of)| of.pending_tasks.to_string()),
            ("at most", &|(_, of)| of.greatest_pending_tasks.to_string()),
        ],
    )
}

fn reads_and_room(runs: &[Run]) -> Table {
    Table::new(
        "Reads and room: SSTables per point read and per range read; SSTables and levels at the end; size at the \
         end, also per byte of rows that exist; maximum size, unfinished outputs included; maximum size of \
         unfinished outputs",
        runs.iter().map(|run| (run.name.as_str(), &run.outcome)),
        &[
            ("", &|(name, _): &Row<'_>| (*name).to_owned()),
            ("point", &|(_, of)| significant(of.sstables_per_point_read)),
            ("range", &|(_, of)| significant(of.sstables_per_range_read)),
            ("SSTables", &|(_, of)| of.sstables.to_string()),
            ("levels", &|(_, of)| significant(of.levels)),
            ("size", &|(_, of)| bytes(of.dataset_bytes as f64)),
            ("per live", &|(_, of)| significant(of.space_amplification)),
            ("at most", &|(_, of)| bytes(of.greatest_bytes)),
            ("temporary", &|(_, of)| bytes(of.greatest_temporary_bytes)),
        ],
    )
}

fn levels(run: &Run) -> Table {
    let outcome = &run.outcome;
    let compactions = outcome.compactions;
    let caption = format!(
        "{}: levels at the end, and bytes written to each per flushed byte; {} merges, {} for tombstones, {} moves, \
         {} expired SSTables dropped, in {}",
        run.name,
        compactions.merges,
        compactions.tombstones,
        compactions.level_only,
        compactions.expired_sstables,
        time(outcome.duration_s),
    );
    Table::new(
        caption,
        &outcome.by_level,
        &[
            ("level", &|level: &&Level| level.level.to_string()),
            ("SSTables", &|level| level.sstables.to_string()),
            ("size", &|level| bytes(level.bytes as f64)),
            ("written", &|level| bytes(level.written_bytes)),
            ("amplification", &|level| {
                significant(level.write_amplification)
            }),
        ],
    )
}

/// A span of time in days if it is long.
fn time(span_s: f64) -> String {
    if span_s < 2.0 * 86_400.0 {
        seconds(span_s)
    } else {
        format!("{} days", significant(span_s / 86_400.0))
    }
}

#[cfg(test)]
mod tests;
