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

fn writes(runs: &[Run]) -> Table {
    let number = |value: f64| significant(value);
    Table::new(
        "Writes: MB/s by flushes and compactions together (1 MB = 2^20 bytes), over all of the time and over its \
         second half; MB/s that compactions read; bytes written per flushed byte; compactions to be done at the end \
         and at most",
        runs,
        &[
            ("", &|run: &&Run| run.name.clone()),
            ("written", &|run| number(run.outcome.write_mb_per_s)),
            ("late", &|run| number(run.outcome.late_write_mb_per_s)),
            ("read", &|run| number(run.outcome.read_mb_per_s)),
            ("amplification", &|run| {
                number(run.outcome.write_amplification)
            }),
            ("model", &|run| {
                cell(run.outcome.model, |model| number(model.write_mb_per_s))
            }),
            ("pending", &|run| run.outcome.pending_tasks.to_string()),
            ("at most", &|run| {
                run.outcome.greatest_pending_tasks.to_string()
            }),
        ],
    )
}

fn reads_and_room(runs: &[Run]) -> Table {
    Table::new(
        "Reads and room: SSTables per point read and per range read; SSTables and levels at the end; size at the \
         end, per byte of rows that exist, and at most with unfinished outputs; room of the latter at most",
        runs,
        &[
            ("", &|run: &&Run| run.name.clone()),
            ("point", &|run| {
                significant(run.outcome.sstables_per_point_read)
            }),
            ("range", &|run| {
                significant(run.outcome.sstables_per_range_read)
            }),
            ("SSTables", &|run| run.outcome.sstables.to_string()),
            ("levels", &|run| significant(run.outcome.levels)),
            ("size", &|run| bytes(run.outcome.dataset_bytes as f64)),
            ("per live", &|run| {
                significant(run.outcome.space_amplification)
            }),
            ("at most", &|run| bytes(run.outcome.greatest_bytes)),
            ("temporary", &|run| {
                bytes(run.outcome.greatest_temporary_bytes)
            }),
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
    match span_s < 2.0 * 86_400.0 {
        true => seconds(span_s),
        false => format!("{} days", significant(span_s / 86_400.0)),
    }
}

#[cfg(test)]
mod tests;
