//! Tables of a comparison of chunk lengths.

use super::{ChunkLengthReport, Condition, ReadFigure, VariantReport};
use crate::report::document::{Block, Column, Table, cell};
use crate::report::units::{bytes, mebibytes, milliseconds, significant, times};
use crate::report::{runs, with_interval};
use crate::text_table::count;

type Row<'a> = &'a VariantReport<'a>;

fn name(row: &Row<'_>) -> String {
    row.record.variant.to_string()
}

/// All tables but the first.
pub(super) fn others(report: &ChunkLengthReport<'_>) -> Vec<Block> {
    let has_compaction = report
        .variants
        .iter()
        .any(|v| !v.compacting.figures.is_empty());
    let mut tables = Vec::new();
    if has_compaction {
        tables.push(reads(report, Condition::Compacting));
    }
    tables.push(stored(report));
    tables.extend(ratios(report, has_compaction));
    let mut blocks: Vec<Block> = tables.into_iter().map(Block::Table).collect();
    blocks.extend(published(report));
    blocks
}

pub(super) fn reads(report: &ChunkLengthReport<'_>, condition: Condition) -> Table {
    let rate = report.rate_per_s.map_or_else(
        || "at a common rate".to_owned(),
        |rate| format!("at {} reads/s", significant(rate)),
    );
    let caption = format!(
        "Reads {}, medians: the most reads/s, and per read of these KiB from disk, KiB decompressed and us \
         of processor; then latencies {rate}, ms, and p99 at the most reads/s",
        condition.name()
    );
    let of = |figure, text: fn(f64) -> String| {
        move |row: &Row<'_>| cell(row.under(condition).figure(figure), |s| text(s.median))
    };
    let kibibytes = |bytes: f64| significant(bytes / 1024.0);
    let reads_per_s = of(ReadFigure::ReadsPerS, |n| count(n.round() as u64));
    let disk = of(ReadFigure::DiskBytesPerRead, kibibytes);
    let decompressed = of(ReadFigure::DecompressedBytesPerRead, kibibytes);
    let cpu = of(ReadFigure::CpuNsPerRead, |ns| significant(ns / 1e3));
    let [p50, p99, p999, peak_p99] = [
        ReadFigure::P50Ns,
        ReadFigure::P99Ns,
        ReadFigure::P999Ns,
        ReadFigure::PeakP99Ns,
    ]
    .map(|figure| of(figure, milliseconds));
    let compacted = of(ReadFigure::CompactedBytesPerS, mebibytes);
    let mut columns: Vec<Column<'_, Row<'_>>> = vec![
        ("variant", &name),
        ("runs", &|row| runs(row.counted, row.runs)),
        ("reads/s", &reads_per_s),
        ("disk KiB", &disk),
        ("decomp. KiB", &decompressed),
        ("CPU us", &cpu),
        ("p50", &p50),
        ("p99", &p99),
        ("p99.9", &p999),
        ("p99 at most", &peak_p99),
    ];
    if condition == Condition::Compacting {
        columns.push(("compacted MiB/s", &compacted));
    }
    Table::new(caption, &report.variants, &columns)
}

fn stored(report: &ChunkLengthReport<'_>) -> Table {
    let chunked =
        |row: &Row<'_>, text: String| cell(row.record.variant.chunk_length_bytes, |_| text.clone());
    Table::new(
        "What is stored: compressed over uncompressed, Data.db, chunks, bytes of chunk offsets in memory \
         and those for each GiB of data; page cache that the hot rows take, and how much that is of the \
         memory they may have",
        &report.variants,
        &[
            ("variant", &name),
            ("ratio", &|row| significant(row.record.ratio)),
            ("Data.db", &|row| bytes(row.record.data_file_bytes as f64)),
            ("chunks", &|row| chunked(row, count(row.record.chunks))),
            ("offsets", &|row| {
                chunked(row, bytes(row.record.chunk_offset_bytes as f64))
            }),
            ("per GiB", &|row| {
                chunked(row, bytes(row.record.chunk_offset_bytes_per_gib.round()))
            }),
            ("hot pages", &|row| bytes(row.record.hot_bytes as f64)),
            ("of memory", &|row| times(row.record.pressure)),
        ],
    )
}

/// Variants in comparison; `None` if there is nothing to compare with.
fn ratios(report: &ChunkLengthReport<'_>, has_compaction: bool) -> Option<Table> {
    let baseline = report.baseline.filter(|_| report.variants.len() > 1)?;
    let of = |condition, figure| {
        move |row: &Row<'_>| match row.record.variant == baseline {
            true => "1".to_owned(),
            false => cell(row.under(condition).ratio(figure), with_interval),
        }
    };
    let of_each = |condition| [ReadFigure::ReadsPerS, ReadFigure::P99Ns].map(|f| of(condition, f));
    let (alone, compacting) = (of_each(Condition::Alone), of_each(Condition::Compacting));
    let disk = of(Condition::Alone, ReadFigure::DiskBytesPerRead);
    let mut columns: Vec<Column<'_, Row<'_>>> = vec![
        ("variant", &name),
        ("reads/s", &alone[0]),
        ("p99", &alone[1]),
        ("disk per read", &disk),
    ];
    if has_compaction {
        columns.push(("reads/s compacting", &compacting[0]));
        columns.push(("p99 compacting", &compacting[1]));
    }
    let caption = format!(
        "As a multiple of {baseline}, within each repeat: median, and 95% bootstrap interval over repeats"
    );
    Some(Table::new(caption, &report.variants, &columns))
}

fn published(report: &ChunkLengthReport<'_>) -> Option<Block> {
    Table::new(
        "Chunks of 4 KiB as a multiple of 64 KiB, as published and as measured",
        &report.published,
        &[
            ("figure", &|c| c.name()),
            ("published", &|c| c.published_text()),
            ("ratio", &|c| times(c.published_ratio)),
            ("here", &|c| cell(c.measured, with_interval)),
            ("verdict", &|c| c.verdict.text().to_owned()),
        ],
    )
    .unless_empty()
}
