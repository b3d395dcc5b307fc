//! Tables of an interference experiment.

use super::{ArmReport, Figure, PointReport, Report};
use crate::arm::Arm;
use crate::report::document::{Column, Table, cell};
use crate::report::units::{mebibytes, milliseconds, significant};
use crate::report::{runs, with_interval};
use crate::text_table::count;

fn table<'a>(
    caption: &str,
    point: &'a PointReport<'_>,
    columns: &[Column<'_, &'a ArmReport>],
) -> Table {
    Table::new(caption, &point.arms, columns)
}

fn median(figure: Figure, text: fn(f64) -> String) -> impl Fn(&&ArmReport) -> String {
    move |arm| arm.median(figure, text)
}

fn name(arm: &&ArmReport) -> String {
    arm.arm.to_string()
}

/// Latencies of reads during the compaction.
pub(super) fn latencies(point: &PointReport<'_>) -> Table {
    table(
        "Reads during the compaction, ms: median of the runs that count",
        point,
        &[
            ("arm", &name),
            ("runs", &|arm| runs(arm.counted, arm.runs)),
            ("p50", &median(Figure::P50Ns, milliseconds)),
            ("p99", &median(Figure::P99Ns, milliseconds)),
            ("p99 least–most", &|arm| {
                cell(arm.figure(Figure::P99Ns), |s| {
                    format!("{}–{}", milliseconds(s.least), milliseconds(s.most))
                })
            }),
            ("p99.9", &median(Figure::P999Ns, milliseconds)),
            ("max", &median(Figure::MaxNs, milliseconds)),
            ("mean", &median(Figure::MeanNs, milliseconds)),
        ],
    )
}

/// Costs of a compaction and its effect on memory.
pub(super) fn costs(point: &PointReport<'_>) -> Table {
    let pages = |number: f64| count(number.round() as u64);
    table(
        "The compaction: MiB of uncompressed input per second, processor seconds per GiB of it, its \
         duration; meanwhile evictions of pages of the hot set, each time counted (of so many pages), and \
         refaults of any file's; medians",
        point,
        &[
            ("arm", &name),
            ("MiB/s", &median(Figure::CompactionBytesPerS, mebibytes)),
            (
                "CPU s/GiB",
                &median(Figure::CompactionCpuSPerGib, significant),
            ),
            ("s", &median(Figure::DuringS, significant)),
            ("hot pages evicted", &median(Figure::EvictedPages, pages)),
            ("of", &|arm| cell(point.hot_pages(arm.arm), count)),
            ("refaults", &median(Figure::RefaultedPages, pages)),
        ],
    )
}

/// Latencies of reads without a compaction: of the inputs before, of the output after. A compaction past the
/// page cache leaves an output none of which is cached yet.
pub(super) fn before_and_after(point: &PointReport<'_>) -> Table {
    table(
        "Reads before the compaction, of its inputs, hot rows warm, and right after it, of its output as \
         it left it (idle: of the inputs), ms; medians",
        point,
        &[
            ("arm", &name),
            ("p99 before", &median(Figure::P99BeforeNs, milliseconds)),
            ("p99 after", &median(Figure::P99AfterNs, milliseconds)),
            ("p99.9 after", &median(Figure::P999AfterNs, milliseconds)),
        ],
    )
}

/// Arms in comparison; `None` if there is nothing to compare with.
pub(super) fn ratios(point: &PointReport<'_>) -> Option<Table> {
    let to = |base: Arm, figure| {
        move |arm: &&ArmReport| match arm.arm == base {
            true => "1".to_owned(),
            false => cell(arm.ratio(base, figure), with_interval),
        }
    };
    let to_idle = to(Arm::Idle, Figure::P99Ns);
    let to_buffered = [Figure::P99Ns, Figure::P999Ns, Figure::MeanNs].map(|f| to(Arm::BUFFERED, f));
    let mut columns: Vec<Column<'_, &ArmReport>> = vec![("arm", &name)];
    if point.counted(Arm::Idle).is_some() {
        columns.push(("p99 / idle", &to_idle));
    }
    if point.counted(Arm::BUFFERED).is_some() {
        columns.push(("p99 / buffered", &to_buffered[0]));
        columns.push(("p99.9 / buffered", &to_buffered[1]));
        columns.push(("mean / buffered", &to_buffered[2]));
    }
    let caption = "Latency as a multiple of another arm's, within each repeat: median, and 95% bootstrap \
         interval over repeats";
    (columns.len() > 1 && point.arms.len() > 1).then(|| table(caption, point, &columns))
}

/// Outcomes side by side, such as those of several machines; by the first point of each.
pub(super) fn side_by_side(reports: &[Report<'_>]) -> Table {
    let mut arms: Vec<Arm> = Vec::new();
    for point in reports.iter().filter_map(|report| report.points.first()) {
        let new = point.arms.iter().map(|arm| arm.arm);
        arms.extend(new.filter(|arm| !arms.contains(arm)).collect::<Vec<_>>());
    }
    let p99 = |report: &Report<'_>, arm: &Arm| {
        let found = report.points.first()?.arms.iter().find(|a| a.arm == *arm)?;
        let p99 = found.median(Figure::P99Ns, milliseconds);
        Some(match found.ratio(Arm::BUFFERED, Figure::P99Ns) {
            Some(ratio) => format!("{p99}, {}", with_interval(ratio)),
            None => p99,
        })
    };
    let p99s: Vec<_> = reports
        .iter()
        .map(|report| move |arm: &Arm| cell(p99(report, arm), |text| text))
        .collect();
    let mut columns: Vec<Column<'_, Arm>> = vec![("arm", &Arm::to_string)];
    for (report, cell) in reports.iter().zip(&p99s) {
        columns.push((report.name.as_str(), cell));
    }
    Table::new(
        "Side by side: p99 of reads, ms, and as a multiple of that of the buffered compaction; the first \
         hot set of each",
        arms,
        &columns,
    )
}
