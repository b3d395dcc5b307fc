//! Report of a fan-out experiment.

use serde_json::json;

use super::chart::{Axis, Horizontal, Line, Mark, Panel, Plot, Stroke, plain};
use super::document::{Block, Facts, Section, Table, cell};
use super::units::{GIB, MIB, bytes, significant};
use super::{Report, facts, texts};
use crate::comparison::{Comparison, Measured};
use crate::experiment::Experiment;
use crate::fan_out::outcome::{ArmRun, FanOutOutcome, Figures};
use crate::figure::{Figure, Unit};

/// Bytes that flushes and compactions wrote per flushed byte.
pub const WRITE_AMPLIFICATION: Figure =
    Figure::lower("write_amplification", "written per flushed", Unit::Number);
/// The same per byte of the inserted values, which is MB/s for 1 MB/s of inserts.
pub const WRITTEN_PER_INSERTED: Figure =
    Figure::lower("written_per_inserted", "MB/s per MB/s", Unit::Number);
/// Levels with data at the end.
pub const LEVELS: Figure = Figure::lower("levels", "levels", Unit::Number);
/// SSTables of a point read.
pub const POINT_READ: Figure = Figure::lower(
    "sstables_per_point_read",
    "SSTables per point read",
    Unit::Number,
);
/// SSTables of a range read.
pub const RANGE_READ: Figure = Figure::lower(
    "sstables_per_range_read",
    "SSTables per range read",
    Unit::Number,
);
/// Size at the end.
pub const SIZE: Figure = Figure::lower("dataset_bytes", "size MiB", Unit::Mebibytes);

/// Short name of the strategy that others are compared with.
const BASELINE: &str = "first";

static EXPERIMENT: Experiment = Experiment {
    title: "Fan-out",
    heading: "Bytes written by fan-out",
    introduction: "CASSANDRA-7871 at a small scale: SSTables of rows with a time to live are flushed, and \
        compacted by each strategy. What was really written, in comparison with a simulation of the same \
        flushes, a formula, and the published figures.",
    arm: "strategy",
    headline: WRITE_AMPLIFICATION,
    baseline: BASELINE,
};

/// The report of an outcome.
pub fn report(name: impl Into<String>, outcome: &FanOutOutcome) -> Report {
    let comparison = comparison(outcome);
    let section = Section {
        name: name.into(),
        // It is in a paragraph, which the text has as well.
        headline: String::new(),
        facts: facts(outcome),
        blocks: blocks(outcome, &comparison),
    };
    let circumstances = json!({
        "flushes": outcome.flushes,
        "strategies": outcome.runs,
    });
    let (end, points) = (outcome.header.end, [(circumstances, comparison)]);
    Report::new(&EXPERIMENT, end, points, &outcome.warnings, section)
}

/// Each strategy in comparison with the first.
fn comparison(outcome: &FanOutOutcome) -> Comparison {
    let arms = outcome.options.arms.iter();
    let arms: Vec<String> = arms.map(|arm| arm.name(&outcome.options)).collect();
    let runs = outcome.runs.iter().map(|run| Measured {
        arm: run.name.clone(),
        attempt: run.attempt.clone(),
        figures: measured(&run.measured, outcome),
    });
    let baseline = arms.first().map(|arm| (BASELINE, arm.clone()));
    let mut comparison = Comparison::new(&EXPERIMENT, arms, baseline, outcome.options.seed, runs);
    // Another repeat would write the same bytes.
    comparison
        .caveats
        .retain(|caveat| caveat.kind != "few_repeats");
    comparison
}

fn measured(figures: &Figures, outcome: &FanOutOutcome) -> Vec<(Figure, f64)> {
    vec![
        (WRITE_AMPLIFICATION, figures.write_amplification()),
        (WRITTEN_PER_INSERTED, per_inserted(figures, outcome)),
        (LEVELS, figures.levels),
        (POINT_READ, figures.sstables_per_point_read),
        (RANGE_READ, figures.sstables_per_range_read),
        (SIZE, figures.dataset_bytes),
    ]
}

/// A figure of flushed bytes is one of stored bytes: with the inserted ones it is comparable to the issue's.
fn per_inserted(figures: &Figures, outcome: &FanOutOutcome) -> f64 {
    figures.written_bytes() / outcome.flushes.inserted_bytes()
}

fn facts(outcome: &FanOutOutcome) -> Facts {
    let options = &outcome.options;
    let (header, command) = (&outcome.header, options.command.as_deref());
    let own = [
        facts::of_record("options", options, &["command", "arms", "directory"]),
        facts::of_record("flushed", &outcome.flushes, &[]),
    ];
    facts::of_experiment(header, command, own, &outcome.environment)
}

fn blocks(outcome: &FanOutOutcome, comparison: &Comparison) -> Vec<Block> {
    let mut blocks = vec![
        Block::Paragraph(headline(outcome)),
        Block::Table(writes(outcome)),
        Block::Table(reads(outcome)),
        Block::Table(published(outcome)),
        Block::Paragraph(
            "The issue has no figures of level count compaction, which no release of Cassandra has, and its formula is \
             of leveled compaction alone."
                .to_owned(),
        ),
    ];
    let pictures: String = outcome.runs.iter().map(by_level).collect();
    if !pictures.is_empty() {
        blocks.push(Block::Figure {
            pictures,
            caption: "MiB written to each level, flushes included; dashed as simulated.",
        });
    }
    blocks.extend(comparison.left_out_table());
    let mut caveats = texts(&comparison.caveats);
    caveats.extend(texts(&outcome.warnings));
    if !caveats.is_empty() {
        blocks.push(Block::Caveats("Fan-out", caveats));
    }
    blocks.extend(outcome.runs.iter().map(|run| Block::Table(levels(run))));
    blocks
}

/// Error of the simulator.
fn headline(outcome: &FanOutOutcome) -> String {
    let runs = outcome.runs.iter();
    let sound = runs.filter(|run| run.attempt.invalid.is_empty());
    let off: Vec<f64> = sound
        .map(|run| percent_off(run, Figures::written_bytes).abs())
        .collect();
    // Up: within 1.5% is true of 1.41%.
    let most = off.iter().copied().fold(0.0, f64::max) * 10.0;
    let most = most.ceil().max(1.0) / 10.0;
    let of = match (off.len(), outcome.options.arms.len()) {
        (0, _) => return "No strategy was run to its end, with a sound table.".to_owned(),
        (count, all) if count == all => "for each strategy".to_owned(),
        (count, all) => format!("for {count} of {all} strategies"),
    };
    format!("The simulator is within {most:.1}% of the bytes that were written, {of}.")
}

/// A run in a sentence.
pub(crate) fn sentence(run: &ArmRun) -> String {
    let (measured, simulated) = (&run.measured, &run.simulated);
    format!(
        "{}: {} written, {} per flushed byte, {} simulated ({:+.1}% off)",
        run.name,
        bytes(measured.written_bytes()),
        significant(measured.write_amplification()),
        significant(simulated.write_amplification()),
        percent_off(run, Figures::written_bytes),
    )
}

/// Percent by which a number is larger than another.
fn difference(number: f64, other: f64) -> f64 {
    100.0 * (number / other - 1.0)
}

/// Percent by which a measured figure is larger than the simulated one.
fn percent_off(run: &ArmRun, figure: fn(&Figures) -> f64) -> f64 {
    difference(figure(&run.measured), figure(&run.simulated))
}

/// A measured figure and the simulated one.
fn measured_and_simulated(run: &ArmRun, figure: fn(&Figures) -> f64) -> String {
    two_numbers(figure(&run.measured), figure(&run.simulated))
}

fn two_numbers(a: f64, b: f64) -> String {
    format!("{}, {}", significant(a), significant(b))
}

fn writes(outcome: &FanOutOutcome) -> Table {
    let amplification = Figures::write_amplification;
    Table::new(
        "Writes, measured and simulated: GiB of Data.db by flushes and compactions together, the difference, and GiB of \
         the simulations that write least and most; bytes written per flushed byte, also by the formula; merges; GiB of \
         all components that compactions wrote, measured",
        &outcome.runs,
        &[
            ("strategy", &|run: &&ArmRun| run.name.clone()),
            ("GiB", &|run| {
                measured_and_simulated(run, |f| f.written_bytes() / GIB)
            }),
            ("difference", &|run| {
                format!("{:+.1}%", percent_off(run, Figures::written_bytes))
            }),
            ("least–most", &|run| {
                let [least, most] = run.simulated_range_bytes.map(|b| significant(b / GIB));
                format!("{least}–{most}")
            }),
            ("per flushed", &|run| {
                measured_and_simulated(run, amplification)
            }),
            ("formula", &|run| {
                cell(run.formula, |f| significant(f.write_amplification))
            }),
            ("merges", &|run| {
                format!("{}, {}", run.measured.merges, run.simulated.merges)
            }),
            ("all components", &|run| {
                significant(run.all_components_bytes as f64 / GIB)
            }),
        ],
    )
}

fn reads(outcome: &FanOutOutcome) -> Table {
    Table::new(
        "Levels and reads, measured and simulated: levels with data at the end, L0 included, of which the highest \
         counts by the part of its limit that it holds; levels above L0 by the formula; SSTables whose range and filter \
         have the partition of a row, and whose range has it, over the second half of the time; MiB at the end",
        &outcome.runs,
        &[
            ("strategy", &|run: &&ArmRun| run.name.clone()),
            ("levels", &|run| measured_and_simulated(run, |f| f.levels)),
            ("formula", &|run| {
                cell(run.formula, |f| significant(f.levels))
            }),
            ("point read", &|run| {
                measured_and_simulated(run, |f| f.sstables_per_point_read)
            }),
            ("range read", &|run| {
                measured_and_simulated(run, |f| f.sstables_per_range_read)
            }),
            ("MiB", &|run| {
                measured_and_simulated(run, |f| f.dataset_bytes / MIB)
            }),
        ],
    )
}

fn published(outcome: &FanOutOutcome) -> Table {
    // A share of no first run is no number, and there is no row then.
    let to_first = |run: &ArmRun, amount: fn(&ArmRun) -> f64| {
        let first = outcome.runs.first().map_or(f64::NAN, amount);
        format!("{:+.1}%", difference(amount(run), first))
    };
    let measured = |run: &ArmRun| run.measured.written_bytes();
    let published = |run: &ArmRun| {
        run.arm
            .published()
            .map_or(f64::NAN, |row| row.write_mb_per_s)
    };
    Table::new(
        "In comparison with the issue, whose cluster had 169 GB of inserts in a time to live: MB/s written for 1 MB/s of \
         inserted values, measured and published; what that is more or less than of the first strategy, likewise; and \
         levels, likewise",
        &outcome.runs,
        &[
            ("strategy", &|run: &&ArmRun| run.name.clone()),
            ("MB/s", &|run| {
                significant(per_inserted(&run.measured, outcome))
            }),
            ("published", &|run| significant(published(run))),
            ("to first", &|run| to_first(run, measured)),
            ("published", &|run| {
                cell(run.arm.published(), |_| to_first(run, published))
            }),
            ("levels", &|run| significant(run.measured.levels)),
            ("published", &|run| {
                cell(run.arm.published(), |row| significant(row.levels))
            }),
        ],
    )
}

fn levels(run: &ArmRun) -> Table {
    let (measured, simulated) = (&run.measured, &run.simulated);
    let all = measured.by_level.len().max(simulated.by_level.len());
    let rows = (0..all).map(|level| {
        let of = |figures: &Figures| figures.by_level.get(level).copied().unwrap_or_default();
        (level, of(measured), of(simulated))
    });
    Table::new(
        format!(
            "{}: levels, measured and simulated; SSTables and MiB at the end, and MiB written to each; {} and {} moves \
             without a rewrite; verified SSTables at the end: {}; expired cells and tombstones that were dropped: {}",
            run.name,
            measured.level_changes,
            simulated.level_changes,
            run.verified_sstables,
            run.purged
        ),
        rows,
        &[
            ("level", &|(level, ..)| level.to_string()),
            ("SSTables", &|(_, m, s)| {
                format!("{}, {}", m.sstables, s.sstables)
            }),
            ("MiB", &|(_, m, s)| {
                two_numbers(m.bytes / MIB, s.bytes / MIB)
            }),
            ("written", &|(_, m, s)| {
                two_numbers(m.written_bytes / MIB, s.written_bytes / MIB)
            }),
        ],
    )
}

/// Chart of the bytes written to each level, measured and simulated.
fn by_level(run: &ArmRun) -> String {
    let levels = run
        .measured
        .by_level
        .len()
        .max(run.simulated.by_level.len());
    let at = |level: usize| level as f64;
    let line = |name, figures: &Figures, stroke| {
        let written = figures
            .by_level
            .iter()
            .map(|level| level.written_bytes / MIB);
        let texts: Vec<String> = written.clone().map(significant).collect();
        let points = written.enumerate().map(|(level, mib)| (at(level), mib));
        Line::new(name, stroke, points.collect())
            .described(format!("{name} {} by level", texts.join(", ")))
    };
    let (solid, dashed) = (Stroke::numbered(0), Stroke::numbered(1).with_dashes("7 3"));
    let lines = vec![
        line("measured", &run.measured, solid),
        line("simulated", &run.simulated, dashed),
    ];
    let marks = (0..levels).map(|level| Mark::new(at(level), plain(at(level))));
    let x = Horizontal {
        name: "level",
        axis: Axis::linear([0.0, at(levels.saturating_sub(1)).max(1.0)].into_iter()),
        marks: marks.collect(),
    };
    let plot = Plot {
        heading: Some((&run.name, solid)),
        ..Plot::new(&run.name, x, Panel::from_zero("written, MiB", lines))
    };
    plot.draw()
}
