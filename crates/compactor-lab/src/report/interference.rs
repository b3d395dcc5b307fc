//! Report of an interference experiment.

use serde::Serialize;

use super::document::{Block, Document, Section, cell};
use super::units::{bytes, milliseconds, seconds, significant};
use super::{
    Counted, FigureRatio, FigureSpread, LeftOut, facts, left_out, ratio_of, ratios, spread_of,
    spreads, texts, with_interval,
};
use crate::arm::Arm;
use crate::fio::FioOutcome;
use crate::outcome::{End, Outcome, Run, Subject, SweepPoint, Warning};
use crate::stats::{Ratio, Spread};
use crate::text_table::counted;

mod caveats;
mod charts;
mod figure;
mod tables;

pub use figure::Figure;

/// The figures of an outcome.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Report<'a> {
    /// Name of the outcome, such as its file.
    pub name: String,
    /// End of the experiment.
    pub end: &'a End,
    /// One for each size of the hot set.
    pub points: Vec<PointReport<'a>>,
    /// Caveats about all of the numbers.
    pub warnings: &'a [Warning],
    /// Measurements of the device by itself, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fio: Option<&'a FioOutcome>,
    /// Source of the numbers.
    #[serde(skip)]
    pub outcome: &'a Outcome,
}

/// The figures at one size of the hot set.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct PointReport<'a> {
    /// Bytes of page cache that the hot set was to take.
    pub hot_set_bytes: u64,
    /// The hot set divided by the memory that there was.
    pub pressure: f64,
    /// Arms in the order in which they were named.
    pub arms: Vec<ArmReport>,
    /// Runs that do not count, without warm-ups.
    pub left_out: Vec<LeftOut<'a>>,
    /// Caveats about the numbers of this point: those that the experiment noticed, and those that the
    /// numbers show.
    #[serde(rename = "doubts")]
    pub caveats: Vec<Warning>,
    /// Length of a page of the machine.
    pub page_bytes: u64,
    /// Source of the numbers.
    #[serde(skip)]
    pub point: &'a SweepPoint,
}

/// The figures of one arm.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ArmReport {
    /// The arm.
    pub arm: Arm,
    /// Runs that count.
    pub counted: usize,
    /// Runs without warm-ups.
    pub runs: usize,
    /// Each figure over the runs that count; one that no run has is missing.
    pub figures: Vec<FigureSpread<Figure>>,
    /// Comparison with reads that nothing disturbs.
    pub to_idle: Vec<FigureRatio<Figure>>,
    /// Comparison with a compaction through the page cache.
    pub to_buffered: Vec<FigureRatio<Figure>>,
}

impl<'a> Report<'a> {
    /// The report of an outcome.
    pub fn new(name: impl Into<String>, outcome: &'a Outcome) -> Report<'a> {
        let points = outcome.points.iter();
        Report {
            name: name.into(),
            end: &outcome.end,
            points: points
                .map(|point| PointReport::new(outcome, point))
                .collect(),
            warnings: &outcome.warnings,
            fio: None,
            outcome,
        }
    }

    /// Adds what `fio` measured on the same device.
    #[must_use]
    pub fn with_fio(self, fio: &'a FioOutcome) -> Report<'a> {
        Report {
            fio: Some(fio),
            ..self
        }
    }

    /// Reports one after the other; several begin with a comparison.
    pub fn document(reports: &[Report<'_>]) -> Document {
        let mut sections = Vec::new();
        if reports.len() > 1 {
            sections.push(Section {
                blocks: vec![Block::Table(tables::side_by_side(reports))],
                ..Section::default()
            });
        }
        let numbered = reports.iter().zip(0..);
        sections.extend(numbered.map(|(report, at)| report.section(&format!("r{at}"))));
        Document {
            title: match reports {
                [only] => format!("Interference: {}", only.name),
                _ => "Interference".to_owned(),
            },
            heading: "Reads during a compaction",
            introduction: "Foreground reads of hot rows start at random moments while their table is \
                compacted, once in each way of moving the compaction’s bytes. An arm is named by how the \
                compaction reads / how it writes.",
            sections,
        }
    }

    fn section(&self, id: &str) -> Section {
        let mut blocks = vec![Block::Caveats("About all numbers", texts(self.warnings))];
        blocks.extend(charts::sweep(self, id));
        for (at, point) in self.points.iter().enumerate() {
            blocks.extend(point.blocks(&format!("{id}p{at}")));
        }
        if let Some(fio) = self.fio {
            blocks.push(Block::Heading("The device by itself".to_owned()));
            blocks.extend(super::fio::tables(fio, Some(self)));
        }
        let mut facts = self.facts();
        facts.extend(facts::machine(&self.outcome.environment));
        Section {
            name: self.name.clone(),
            headline: self.headline(),
            facts,
            blocks,
        }
    }

    /// Effect of the buffered compaction and of the gentlest, at the first point.
    fn headline(&self) -> String {
        let Some(point) = self.points.first() else {
            return "No run took place.".to_owned();
        };
        let sentences = [point.of_buffered(), point.of_gentlest()];
        sentences
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join(" ")
    }

    fn facts(&self) -> super::document::Facts {
        let (outcome, options) = (self.outcome, &self.outcome.options);
        let mut facts = facts::of_experiment(
            ("experiment", ""),
            outcome.started_at_ms,
            outcome.elapsed_s,
            &outcome.end,
            options.command.as_deref(),
        );
        let reads = format!(
            "{} reads/s by {}, {}; latency from the moment a read was to start",
            significant(options.rate_per_s),
            counted(u64::from(options.reader_threads), "thread"),
            facts::popularity(options.distribution),
        );
        let compaction = format!(
            "{}; at {} priority, again and again for {}",
            facts::compaction(options),
            options.compaction_priority,
            seconds(options.least_compaction.as_secs_f64()),
        );
        let repeats = format!(
            "{}; {} before and {} after the compaction",
            facts::repeats(options.repeats, "arm", options.seed, options.warm_ups),
            seconds(options.before.as_secs_f64()),
            seconds(options.after.as_secs_f64()),
        );
        facts.extend([
            ("foreground", reads),
            ("compaction", compaction),
            ("repeats", repeats),
        ]);
        facts
    }
}

impl<'a> PointReport<'a> {
    fn new(outcome: &Outcome, point: &'a SweepPoint) -> PointReport<'a> {
        let mut arms = outcome.options.arms.clone();
        for run in &point.runs {
            if !arms.contains(&run.arm) {
                arms.push(run.arm);
            }
        }
        let arms = arms.iter();
        let mut report = PointReport {
            hot_set_bytes: point.hot_set_bytes,
            pressure: point.pressure,
            arms: arms
                .map(|&arm| ArmReport::new(point, arm, outcome.options.seed))
                .collect(),
            left_out: left_out(attempts(point)),
            caveats: Vec::new(),
            page_bytes: outcome.environment.page_bytes,
            point,
        };
        report.caveats = caveats::of(&report);
        report
    }

    /// An arm, if there are runs of it that count.
    fn counted(&self, arm: Arm) -> Option<&ArmReport> {
        self.arms.iter().find(|a| a.arm == arm && a.counted > 0)
    }

    /// Pages of the hot set, the same in all runs that count.
    fn hot_pages(&self, arm: Arm) -> Option<u64> {
        let run = Outcome::counted(self.point, arm).next()?;
        Some(run.hot_set.pages)
    }

    fn blocks(&self, id: &str) -> Vec<Block> {
        let limit = match self.point.memory_limit_bytes {
            Some(limit) => format!("under a limit of {} of memory", bytes(limit as f64)),
            None => "without a limit on memory".to_owned(),
        };
        let room = self
            .point
            .cache_room_bytes
            .map_or_else(String::new, |room| {
                format!(", {} of it left to the page cache", bytes(room as f64))
            });
        let heading = format!(
            "Hot set {}, {limit}{room}: pressure {}",
            bytes(self.hot_set_bytes as f64),
            significant(self.pressure)
        );
        let mut blocks = vec![
            Block::Heading(heading),
            Block::Paragraph(facts::table(&self.point.data)),
            Block::Caveats("About these numbers", texts(&self.caveats)),
            Block::Table(tables::latencies(self)),
        ];
        blocks.extend(charts::curves(self, id));
        blocks.extend(tables::ratios(self).map(Block::Table));
        blocks.push(Block::Table(tables::costs(self)));
        blocks.push(Block::Table(tables::before_and_after(self)));
        blocks.extend(super::left_out_table(&self.left_out));
        blocks.extend(charts::ratios(self, id));
        blocks.extend(charts::timelines(self, id));
        blocks
    }

    fn of_buffered(&self) -> Option<String> {
        let (idle, buffered) = (self.counted(Arm::Idle)?, self.counted(Arm::BUFFERED)?);
        Some(format!(
            "With a hot set of {}, p99 of reads was {} ms with nothing alongside and {} ms during a \
             compaction through the page cache: {}.",
            bytes(self.hot_set_bytes as f64),
            milliseconds(idle.figure(Figure::P99Ns)?.median),
            milliseconds(buffered.figure(Figure::P99Ns)?.median),
            with_interval(ratio_of(&buffered.to_idle, Figure::P99Ns)?)
        ))
    }

    fn of_gentlest(&self) -> Option<String> {
        let others = self.arms.iter();
        let others = others.filter(|a| a.arm != Arm::Idle && a.arm != Arm::BUFFERED);
        let p99s = others.filter_map(|arm| Some((arm, arm.figure(Figure::P99Ns)?.median)));
        let (gentlest, p99) = p99s.min_by(|a, b| a.1.total_cmp(&b.1))?;
        let ratio = ratio_of(&gentlest.to_buffered, Figure::P99Ns)?;
        let verdict = match ratio.differs() {
            true => "",
            false => "; the repeats do not show that they differ",
        };
        Some(format!(
            "The lowest p99 during another compaction was {} ms, of {}: {} of buffered{verdict}.",
            milliseconds(p99),
            gentlest.arm,
            with_interval(ratio)
        ))
    }
}

/// All runs of a point with their arms.
fn attempts(point: &SweepPoint) -> impl Iterator<Item = (Subject, &crate::outcome::Attempt)> {
    let runs = point.runs.iter();
    runs.map(|run| (Subject::Arm(run.arm), &run.attempt))
}

impl ArmReport {
    fn new(point: &SweepPoint, arm: Arm, seed: u64) -> ArmReport {
        let counted = |arm| -> Counted<'_, Run> {
            let runs = Outcome::counted(point, arm);
            runs.map(|run| (run.attempt.repeat, run)).collect()
        };
        let ours = counted(arm);
        let to = |base| match arm == base {
            true => Vec::new(),
            false => ratios(&ours, &counted(base), seed),
        };
        let runs = point.runs.iter();
        ArmReport {
            arm,
            counted: ours.len(),
            runs: runs.filter(|r| r.arm == arm && !r.attempt.warm_up).count(),
            figures: spreads(&ours),
            to_idle: to(Arm::Idle),
            to_buffered: to(Arm::BUFFERED),
        }
    }

    /// A figure over the runs that count.
    pub fn figure(&self, figure: Figure) -> Option<Spread> {
        spread_of(&self.figures, figure)
    }

    /// A figure in comparison with that of the idle or of the buffered arm.
    fn ratio(&self, base: Arm, figure: Figure) -> Option<Ratio> {
        let ratios = match base {
            Arm::Idle => &self.to_idle,
            _ => &self.to_buffered,
        };
        ratio_of(ratios, figure)
    }

    fn median(&self, figure: Figure, text: impl Fn(f64) -> String) -> String {
        cell(self.figure(figure), |spread| text(spread.median))
    }
}
