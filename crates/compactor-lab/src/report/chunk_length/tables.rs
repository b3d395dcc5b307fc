//! The tables of a comparison.

use super::{ChunkLengthReport, Condition, ReadFigure};
use crate::report::table::Table;
use crate::report::tables::with_interval;
use crate::report::units::{NONE, bytes, mebibytes, milliseconds, significant, times};
use crate::text_table::count;

/// All of them, in the order in which they are to be read.
pub(super) fn all(report: &ChunkLengthReport<'_>) -> Vec<Table> {
    let mut tables = vec![reads(report, Condition::Alone)];
    let has_beside = report.variants.iter().any(|v| !v.beside.figures.is_empty());
    if has_beside {
        tables.push(reads(report, Condition::Beside));
    }
    tables.push(stored(report));
    tables.extend(ratios(report, has_beside));
    tables.extend(published(report));
    tables.extend(left_out(report));
    tables
}

fn reads(report: &ChunkLengthReport<'_>, condition: Condition) -> Table {
    let rate = report.rate_per_s.map_or_else(
        || "at a common rate".to_owned(),
        |rate| format!("at {} reads/s", significant(rate)),
    );
    let mut table = Table::new(
        format!(
            "Reads {}, medians: the most reads/s, and per read of these KiB from disk, KiB decompressed and \
             us of processor; then latencies {rate}, ms, and p99 at the most reads/s",
            condition.name()
        ),
        &[
            "variant",
            "runs",
            "reads/s",
            "disk KiB",
            "decomp. KiB",
            "CPU us",
            "p50",
            "p99",
            "p99.9",
            "p99 at most",
        ],
    );
    let is_beside = condition == Condition::Beside;
    if is_beside {
        table.columns.push("compacted MiB/s".to_owned());
    }
    for variant in &report.variants {
        let figures = variant.under(condition);
        let cell = |figure, text: &dyn Fn(f64) -> String| {
            let spread = figures.figure(figure);
            spread.map_or_else(|| NONE.to_owned(), |s| text(s.median))
        };
        let kibibytes = |bytes: f64| significant(bytes / 1024.0);
        let mut row = vec![
            variant.record.variant.to_string(),
            match variant.counted == variant.runs {
                true => variant.runs.to_string(),
                false => format!("{} of {}", variant.counted, variant.runs),
            },
            cell(ReadFigure::ReadsPerS, &|n| count(n.round() as u64)),
            cell(ReadFigure::DiskBytesPerRead, &kibibytes),
            cell(ReadFigure::DecompressedBytesPerRead, &kibibytes),
            cell(ReadFigure::CpuNsPerRead, &|ns| significant(ns / 1e3)),
            cell(ReadFigure::P50Ns, &milliseconds),
            cell(ReadFigure::P99Ns, &milliseconds),
            cell(ReadFigure::P999Ns, &milliseconds),
            cell(ReadFigure::PeakP99Ns, &milliseconds),
        ];
        if is_beside {
            row.push(cell(ReadFigure::CompactedBytesPerS, &mebibytes));
        }
        table.rows.push(row);
    }
    table
}

fn stored(report: &ChunkLengthReport<'_>) -> Table {
    let mut table = Table::new(
        "What is stored: compressed over uncompressed, Data.db, chunks, bytes of chunk offsets in memory \
         and those for each GiB of data; page cache that the hot rows take, and how much that is of the \
         memory they may have",
        &[
            "variant",
            "ratio",
            "Data.db",
            "chunks",
            "offsets",
            "per GiB",
            "hot pages",
            "of memory",
        ],
    );
    for variant in &report.variants {
        let record = variant.record;
        let chunked = |text: String| match record.variant.chunk_length_bytes {
            Some(_) => text,
            None => NONE.to_owned(),
        };
        table.rows.push(vec![
            record.variant.to_string(),
            significant(record.ratio),
            bytes(record.data_file_bytes as f64),
            chunked(count(record.chunks)),
            chunked(bytes(record.chunk_offset_bytes as f64)),
            chunked(bytes(record.chunk_offset_bytes_per_gib.round())),
            bytes(record.hot_bytes as f64),
            times(record.pressure),
        ]);
    }
    table
}

/// Variants in comparison; `None` if there is nothing to compare with.
fn ratios(report: &ChunkLengthReport<'_>, has_beside: bool) -> Option<Table> {
    let baseline = report.baseline.filter(|_| report.variants.len() > 1)?;
    let mut columns = vec![
        (Condition::Alone, ReadFigure::ReadsPerS, "reads/s"),
        (Condition::Alone, ReadFigure::P99Ns, "p99"),
        (
            Condition::Alone,
            ReadFigure::DiskBytesPerRead,
            "disk per read",
        ),
    ];
    if has_beside {
        columns.push((Condition::Beside, ReadFigure::ReadsPerS, "reads/s beside"));
        columns.push((Condition::Beside, ReadFigure::P99Ns, "p99 beside"));
    }
    let mut table = Table::new(
        format!(
            "How many times as much as {baseline}, within each repeat: median, and 95% bootstrap interval over repeats"
        ),
        &["variant"],
    );
    let names = columns.iter().map(|(_, _, name)| (*name).to_owned());
    table.columns.extend(names);
    for variant in &report.variants {
        let mut row = vec![variant.record.variant.to_string()];
        for &(condition, figure, _) in &columns {
            row.push(match variant.record.variant == baseline {
                true => "1".to_owned(),
                false => variant
                    .under(condition)
                    .ratio(figure)
                    .map_or_else(|| NONE.to_owned(), with_interval),
            });
        }
        table.rows.push(row);
    }
    Some(table)
}

fn published(report: &ChunkLengthReport<'_>) -> Option<Table> {
    let mut table = Table::new(
        "Chunks of 4 KiB against 64 KiB, as published and as measured: how many times as much",
        &["figure", "published", "ratio", "here", "verdict"],
    );
    for comparison in &report.published {
        table.rows.push(vec![
            comparison.name(),
            comparison.published_text(),
            times(comparison.published_ratio),
            comparison
                .measured
                .map_or_else(|| NONE.to_owned(), with_interval),
            comparison.verdict.text().to_owned(),
        ]);
    }
    (!table.rows.is_empty()).then_some(table)
}

/// Runs that do not count; `None` if all do.
fn left_out(report: &ChunkLengthReport<'_>) -> Option<Table> {
    let mut table = Table::new(
        "Runs that do not count, and are in none of the figures",
        &["run", "reason"],
    );
    table.prose = true;
    for run in &report.left_out {
        for reason in run.reasons {
            let place = format!("{} repeat {}", run.variant, run.repeat);
            table.rows.push(vec![place, reason.text.clone()]);
        }
    }
    (!table.rows.is_empty()).then_some(table)
}
