//! The tables of a report.

use super::table::Table;
use super::units::{NONE, mebibytes, milliseconds, significant, times};
use super::{ArmReport, Figure, FigureRatio, PointReport, Report, ratio_of};
use crate::arm::Arm;
use crate::stats::{Ratio, Spread};
use crate::text_table::count;

/// All that a point has to show, in the order in which it is to be read.
pub(super) fn of_point(point: &PointReport<'_>) -> Vec<Table> {
    let mut tables = vec![latencies(point)];
    tables.extend(ratios(point));
    tables.push(costs(point));
    tables.push(around(point));
    tables.extend(left_out(point));
    tables
}

/// How long reads took while the compaction went on.
fn latencies(point: &PointReport<'_>) -> Table {
    let mut table = Table::new(
        "Reads during the compaction, ms: median of the runs that count",
        &[
            "arm",
            "runs",
            "p50",
            "p99",
            "p99 least–most",
            "p99.9",
            "max",
            "mean",
        ],
    );
    for arm in &point.arms {
        let middle = |figure| cell(arm.figure(figure), |s| milliseconds(s.median));
        table.rows.push(vec![
            arm.arm.to_string(),
            runs(arm),
            middle(Figure::P50Ns),
            middle(Figure::P99Ns),
            cell(arm.figure(Figure::P99Ns), |s| {
                format!("{}–{}", milliseconds(s.least), milliseconds(s.most))
            }),
            middle(Figure::P999Ns),
            middle(Figure::MaxNs),
            middle(Figure::MeanNs),
        ]);
    }
    table
}

/// What a compaction cost and what it did to memory.
fn costs(point: &PointReport<'_>) -> Table {
    let mut table = Table::new(
        "The compaction: MiB of uncompressed input per second, processor seconds for a GiB of it, how \
         long it went on; meanwhile evictions of pages of the hot set, each time counted (of so many \
         pages), and refaults of any file's; medians",
        &[
            "arm",
            "MiB/s",
            "CPU s/GiB",
            "s",
            "hot pages evicted",
            "of",
            "refaults",
        ],
    );
    for arm in &point.arms {
        let pages = |figure| cell(arm.figure(figure), |s| count(s.median.round() as u64));
        table.rows.push(vec![
            arm.arm.to_string(),
            cell(arm.figure(Figure::CompactionBytesPerS), |s| {
                mebibytes(s.median)
            }),
            cell(arm.figure(Figure::CompactionCpuSPerGib), |s| {
                significant(s.median)
            }),
            cell(arm.figure(Figure::DuringS), |s| significant(s.median)),
            pages(Figure::EvictedPages),
            hot_pages(point, arm.arm),
            pages(Figure::RefaultedPages),
        ]);
    }
    table
}

/// What reads cost when nothing goes on: of the inputs before, of the output after. A compaction past
/// the page cache leaves an output of which nothing is there yet.
fn around(point: &PointReport<'_>) -> Table {
    let mut table = Table::new(
        "Reads before the compaction, of its inputs, hot rows warm, and right after it, of its output as \
         it left it (idle: of the inputs), ms; medians",
        &["arm", "p99 before", "p99 after", "p99.9 after"],
    );
    for arm in &point.arms {
        let middle = |figure| cell(arm.figure(figure), |s| milliseconds(s.median));
        table.rows.push(vec![
            arm.arm.to_string(),
            middle(Figure::P99BeforeNs),
            middle(Figure::P99AfterNs),
            middle(Figure::P999AfterNs),
        ]);
    }
    table
}

fn hot_pages(point: &PointReport<'_>, arm: Arm) -> String {
    pages_of_hot_set(point, arm).map_or_else(|| NONE.to_owned(), count)
}

/// Pages of the hot set, the same in all runs that count.
pub(super) fn pages_of_hot_set(point: &PointReport<'_>, arm: Arm) -> Option<u64> {
    let mut runs = point.point.runs.iter();
    let run = runs.find(|run| run.arm == arm && run.counts())?;
    Some(run.hot_set.pages)
}

/// Arms in comparison; `None` if there is nothing to compare with.
fn ratios(point: &PointReport<'_>) -> Option<Table> {
    type Column = (fn(&ArmReport) -> &[FigureRatio], Arm, Figure);
    let to_idle: fn(&ArmReport) -> &[FigureRatio] = |arm| &arm.to_idle;
    let to_buffered: fn(&ArmReport) -> &[FigureRatio] = |arm| &arm.to_buffered;
    let columns: [Column; 4] = [
        (to_idle, Arm::Idle, Figure::P99Ns),
        (to_buffered, Arm::BUFFERED, Figure::P99Ns),
        (to_buffered, Arm::BUFFERED, Figure::P999Ns),
        (to_buffered, Arm::BUFFERED, Figure::MeanNs),
    ];
    let columns: Vec<Column> = columns
        .into_iter()
        .filter(|(_, base, _)| point.has(*base))
        .collect();
    if columns.is_empty() || point.arms.len() < 2 {
        return None;
    }
    let mut table = Table::new(
        "How many times as long, within each repeat: median, and 95% bootstrap interval over repeats",
        &["arm"],
    );
    for (_, base, figure) in &columns {
        let base = if *base == Arm::Idle {
            "idle"
        } else {
            "buffered"
        };
        table.columns.push(format!("{} / {base}", figure.label()));
    }
    for arm in &point.arms {
        let mut row = vec![arm.arm.to_string()];
        for (ratios, base, figure) in &columns {
            row.push(if arm.arm == *base {
                "1".to_owned()
            } else {
                ratio_of(ratios(arm), *figure).map_or_else(|| NONE.to_owned(), with_interval)
            });
        }
        table.rows.push(row);
    }
    Some(table)
}

/// A ratio and its interval: `×0.24 (0.21–0.27)`.
pub(super) fn with_interval(ratio: Ratio) -> String {
    let interval = format!("({}–{})", significant(ratio.low), significant(ratio.high));
    if ratio.repeats < 2 {
        return times(ratio.ratio);
    }
    format!("{} {interval}", times(ratio.ratio))
}

/// Runs that do not count; `None` if all do.
fn left_out(point: &PointReport<'_>) -> Option<Table> {
    if point.left_out.is_empty() {
        return None;
    }
    let mut table = Table::new(
        "Runs that do not count, and are in none of the figures",
        &["run", "reason"],
    );
    table.prose = true;
    for run in &point.left_out {
        for reason in run.reasons {
            let place = format!("{} repeat {}", run.arm, run.repeat);
            table.rows.push(vec![place, reason.text.clone()]);
        }
    }
    Some(table)
}

/// Outcomes side by side, such as those of several machines; by the first point of each.
pub(super) fn side_by_side(reports: &[Report<'_>]) -> Table {
    let mut table = Table::new(
        "Side by side: p99 of reads, ms, and how many times that of the buffered compaction it is; \
         the first hot set of each",
        &["arm"],
    );
    let mut arms: Vec<Arm> = Vec::new();
    for report in reports {
        table.columns.push(report.name.clone());
        for arm in report.points.iter().take(1).flat_map(|point| &point.arms) {
            if !arms.contains(&arm.arm) {
                arms.push(arm.arm);
            }
        }
    }
    for arm in arms {
        let mut row = vec![arm.to_string()];
        for report in reports {
            let point = report.points.first();
            let found = point.and_then(|point| point.arms.iter().find(|a| a.arm == arm));
            row.push(found.map_or_else(
                || NONE.to_owned(),
                |arm| {
                    let p99 = cell(arm.figure(Figure::P99Ns), |s| milliseconds(s.median));
                    match ratio_of(&arm.to_buffered, Figure::P99Ns) {
                        Some(ratio) => format!("{p99}, {}", with_interval(ratio)),
                        None => p99,
                    }
                },
            ));
        }
        table.rows.push(row);
    }
    table
}

fn runs(arm: &ArmReport) -> String {
    if arm.counted == arm.runs {
        arm.runs.to_string()
    } else {
        format!("{} of {}", arm.counted, arm.runs)
    }
}

fn cell(spread: Option<Spread>, text: impl Fn(Spread) -> String) -> String {
    spread.map_or_else(|| NONE.to_owned(), text)
}
