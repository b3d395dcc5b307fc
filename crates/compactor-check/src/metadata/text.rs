//! Metadata as text, in the order and with the names of `sstablemetadata`.
//!
//! Times are in UTC and in ISO 8601, where Cassandra prints the local time of the machine. Information that
//! `sstablemetadata` does not print follows.
//!
//! Source: `SSTableMetadataViewer.printSStableMetadata`, `Util.TermHistogram`.

use std::fmt::Display;

use compactor_sstable::types::temporal::{date_string_of_micros, date_string_of_seconds};

use super::histogram::{DropTimes, HistogramSummary, Percentiles};
use super::stats::BoundMetadata;
use super::{SstableMetadata, TypeName, compression_ratio, words};

/// Width of the longest bar of a histogram.
const BAR_LEN: f64 = 30.0;

/// One SSTable.
pub fn render(metadata: &SstableMetadata) -> String {
    let mut text = Text::default();
    head(&mut text, metadata);
    stats(&mut text, metadata);
    header(&mut text, metadata);
    storage(&mut text, metadata);
    for note in &metadata.notes {
        text.field("Note", note);
    }
    text.out
}

/// Formats several SSTables, followed by totals if there is more than one.
pub fn render_all(all: &[SstableMetadata]) -> String {
    let mut sections: Vec<String> = all.iter().map(render).collect();
    if all.len() > 1 {
        let mut text = Text::default();
        text.field("SSTables", all.len());
        text.bytes("Bytes on disk", all.iter().map(|s| s.total_bytes).sum());
        text.bytes(
            "Bytes uncompressed",
            all.iter().filter_map(|s| s.uncompressed_bytes).sum(),
        );
        text.optional(
            "Compression ratio (as nodetool tablestats)",
            compression_ratio(all),
        );
        memory(&mut text, all);
        sections.push(text.out);
    }
    sections.join("\n")
}

fn head(text: &mut Text, metadata: &SstableMetadata) {
    text.field("SSTable", metadata.sstable.display());
    if let (Some(keyspace), Some(table)) = (&metadata.keyspace, &metadata.table) {
        let index = metadata
            .index
            .as_ref()
            .map(|index| format!("index {index}"));
        text.commented("Table", format!("{keyspace}.{table}"), index);
    }
    text.field("Partitioner", &metadata.partitioner);
    text.field("Bloom Filter FP chance", metadata.bloom_filter_fp_chance);
}

fn stats(text: &mut Text, metadata: &SstableMetadata) {
    let stats = &metadata.stats;
    text.micros("Minimum timestamp", stats.min_timestamp);
    text.micros("Maximum timestamp", stats.max_timestamp);
    let span = stats.max_timestamp.saturating_sub(stats.min_timestamp);
    text.field("Duration", words::days_and_hours(span));
    text.deletion(
        "SSTable min local deletion time",
        stats.min_local_deletion_time,
    );
    text.deletion(
        "SSTable max local deletion time",
        stats.max_local_deletion_time,
    );
    let compressor = metadata.compression.as_ref().map(|c| c.compressor.as_str());
    text.field("Compressor", compressor.unwrap_or("-"));
    if metadata.compression.is_some() {
        text.optional("Compression ratio", stats.recorded_compression_ratio);
    }
    text.commented(
        "TTL min",
        stats.min_ttl,
        words::duration(stats.min_ttl.into()),
    );
    text.commented(
        "TTL max",
        stats.max_ttl,
        words::duration(stats.max_ttl.into()),
    );
    for (label, key) in [
        ("First token", &metadata.first),
        ("Last token", &metadata.last),
    ] {
        if let Some(key) = key {
            let token = key.token_text.clone().unwrap_or_else(|| "--".to_owned());
            text.commented(label, token, Some(key.key.clone()));
        }
    }
    let covered = stats.covered_clusterings.as_ref().map_or_else(
        || "ALL".to_owned(),
        |covered| {
            let open = if covered.start.is_inclusive { '[' } else { '(' };
            let close = if covered.end.is_inclusive { ']' } else { ')' };
            format!(
                "{open}{}, {}{close}",
                values(&covered.start),
                values(&covered.end)
            )
        },
    );
    text.field("Covered clusterings", covered);
    let grace = format!("gc_grace_seconds {}", stats.gc_grace_seconds);
    let droppable = stats
        .estimated_droppable_tombstones
        .map(|part| part.to_string());
    let droppable = droppable.unwrap_or_else(|| "--".to_owned());
    text.commented("Estimated droppable tombstones", droppable, Some(grace));
    text.field("SSTable Level", stats.sstable_level);
    let repaired = (stats.repaired_at != 0)
        .then(|| date_string_of_micros(stats.repaired_at.saturating_mul(1000)));
    text.commented("Repaired at", stats.repaired_at, repaired);
    text.optional("Originating host id", stats.originating_host_id.as_ref());
    text.optional("Pending repair", stats.pending_repair.as_ref());
    let intervals = stats.commit_log_intervals.iter().map(|interval| {
        let place = |p: super::CommitLogPlace| {
            format!(
                "CommitLogPosition(segmentId={}, position={})",
                p.segment_id, p.position
            )
        };
        format!("{}={}", place(interval.start), place(interval.end))
    });
    let intervals: Vec<String> = intervals.collect();
    text.field(
        "Replay positions covered",
        format!("{{{}}}", intervals.join(", ")),
    );
    text.field("totalColumnsSet", stats.total_columns_set);
    text.field("totalRows", stats.total_rows);
    text.field("Estimated tombstone drop times", "");
    drop_times(text, &stats.tombstone_drop_times);
    text.field("Partition Size", "");
    let size = |bytes: i64| match u64::try_from(bytes).ok().and_then(words::bytes) {
        Some(words) => format!("{bytes} ({words})"),
        None => bytes.to_string(),
    };
    histogram(text, "Size (bytes)", &stats.partition_sizes, size);
    text.field("Column Count", "");
    histogram(text, "Columns", &stats.cells_per_partition, |count| {
        count.to_string()
    });
    let coverage = stats
        .token_space_coverage
        .map_or("NaN".to_owned(), |part| part.to_string());
    text.field("Local token space coverage", coverage);
    text.optional("Estimated cardinality", metadata.estimated_cardinality);
}

fn header(text: &mut Text, metadata: &SstableMetadata) {
    let header = &metadata.header;
    let bases = &header.encoding_stats;
    let ttl = words::duration(bases.min_ttl.into());
    text.commented("EncodingStats minTTL", bases.min_ttl, ttl);
    text.commented(
        "EncodingStats minLocalDeletionTime",
        date_string_of_seconds(bases.min_local_deletion_time),
        Some(bases.min_local_deletion_time.to_string()),
    );
    text.micros("EncodingStats minTimestamp", bases.min_timestamp);
    text.field("KeyType", class_of(&header.key_type));
    let clusterings: Vec<&str> = header.clustering_types.iter().map(class_of).collect();
    text.field("ClusteringTypes", format!("[{}]", clusterings.join(", ")));
    for (label, columns) in [
        ("StaticColumns", &header.static_columns),
        ("RegularColumns", &header.regular_columns),
    ] {
        let columns = columns
            .iter()
            .map(|c| format!("{}:{}", c.name, class_of(&c.column_type)));
        text.field(label, columns.collect::<Vec<_>>().join(", "));
    }
    text.field("IsTransient", metadata.stats.is_transient);
}

/// Information that `sstablemetadata` does not print.
fn storage(text: &mut Text, metadata: &SstableMetadata) {
    let stats = &metadata.stats;
    text.field("Partitions", stats.partitions);
    text.field(
        "Has partition level deletions",
        stats.has_partition_level_deletions,
    );
    text.field("Has legacy counter shards", stats.has_legacy_counter_shards);
    if let Some(bytes) = metadata.uncompressed_bytes {
        text.bytes("Uncompressed Data.db bytes", bytes);
    }
    if let Some(compression) = &metadata.compression {
        text.bytes("Compressed Data.db bytes", compression.compressed_bytes);
        text.field(
            "Compression ratio (as nodetool tablestats)",
            compression.ratio,
        );
        text.bytes("Chunk length", compression.chunk_length.into());
        text.field("Chunks", compression.chunks);
        let never = || "never".to_owned();
        let max = compression.max_compressed_length;
        text.field(
            "Chunks stored uncompressed from",
            max.map_or_else(never, |l| l.to_string()),
        );
    }
    memory(text, std::slice::from_ref(metadata));
    if let Some(summary) = &metadata.index_summary {
        let interval = format!(
            "one of {} partitions at full sampling; sampling level {} of 128",
            summary.min_index_interval, summary.sampling_level
        );
        text.commented("Index summary entries", summary.entries, Some(interval));
    }
    text.field("Components", "");
    let width = metadata
        .components
        .iter()
        .map(|file| file.name.len())
        .max()
        .unwrap_or(0);
    let files = metadata
        .components
        .iter()
        .map(|file| (file.name.as_str(), file.bytes));
    for (name, bytes) in files.chain([("total", metadata.total_bytes)]) {
        let words = words::bytes(bytes).map(|words| format!("({words})"));
        text.line(&format!(
            "   {name:width$} {bytes:>15} {}",
            words.unwrap_or_default()
        ));
    }
}

/// Memory use of SSTables in a node, in the terms of `nodetool tablestats`.
fn memory(text: &mut Text, all: &[SstableMetadata]) {
    let filters = all
        .iter()
        .filter_map(|s| s.bloom_filter.as_ref())
        .map(|f| f.memory_bytes);
    let summaries = all
        .iter()
        .filter_map(|s| s.index_summary.as_ref())
        .map(|s| s.memory_bytes);
    let offsets = all.iter().filter_map(|s| s.compression.as_ref());
    text.bytes("Bloom filter off heap memory used", filters.sum());
    text.bytes("Index summary off heap memory used", summaries.sum());
    text.bytes(
        "Compression metadata off heap memory used",
        offsets.map(|c| c.offsets_memory_bytes).sum(),
    );
}

fn values(bound: &BoundMetadata) -> String {
    let values = bound
        .values
        .iter()
        .map(|value| value.as_deref().unwrap_or("null"));
    values.collect::<Vec<_>>().join(":")
}

fn class_of(name: &TypeName) -> &str {
    &name.class
}

fn drop_times(text: &mut Text, times: &DropTimes) {
    let name = |at_s: i64| format!("{at_s} ({})", date_string_of_seconds(at_s));
    let rows = times
        .points
        .iter()
        .map(|point| (name(point.at_s), point.count.into()));
    bars(text, "Drop Time", &rows.collect::<Vec<_>>());
    if let Some(found) = &times.percentiles {
        percentiles(text, found, name);
    }
    if let [first, .., last] | [first @ last] = times.points[..] {
        text.line(&format!("   Min       {}", name(first.at_s)));
        text.line(&format!("   Max       {}", name(last.at_s)));
    }
}

fn histogram(
    text: &mut Text,
    title: &str,
    histogram: &HistogramSummary,
    name: impl Fn(i64) -> String,
) {
    let rows = histogram.buckets.iter().map(|bucket| {
        (
            bucket.up_to.map_or_else(|| "more".to_owned(), &name),
            bucket.count,
        )
    });
    bars(text, title, &rows.collect::<Vec<_>>());
    if let Some(found) = &histogram.percentiles {
        percentiles(text, found, &name);
    }
    text.line(&format!("   Min       {}", name(histogram.min)));
    let max = histogram
        .max
        .map_or_else(|| "more than all buckets".to_owned(), &name);
    text.line(&format!("   Max       {max}"));
}

fn bars(text: &mut Text, title: &str, rows: &[(String, i64)]) {
    let width = rows
        .iter()
        .map(|(name, _)| name.len())
        .max()
        .unwrap_or(0)
        .max(title.len());
    let counts = rows.iter().map(|(_, count)| count.to_string().len());
    let count_width = counts.max().unwrap_or(0).max("Count".len());
    text.line(&format!(
        "   {title:width$} | {:count_width$}  (%)  Histogram",
        "Count"
    ));
    let max = rows
        .iter()
        .map(|(_, count)| *count)
        .max()
        .unwrap_or(0)
        .max(1);
    let sum: f64 = rows.iter().map(|(_, count)| *count as f64).sum();
    for (name, count) in rows {
        // Multiplied and divided in the same order as there: 57 of 100 is 56.
        let percent = (100.0 * (*count as f64 / sum.max(1.0))) as i64;
        let len = *count as f64 / max as f64 * BAR_LEN;
        let mut bar = "O".repeat(len.max(0.0) as usize);
        match len.fract() {
            0.75.. => bar.push('o'),
            0.3.. => bar.push('.'),
            _ => {}
        }
        text.line(&format!(
            "   {name:width$} | {count:count_width$} ({percent:3}) {bar}"
        ));
    }
}

fn percentiles(text: &mut Text, found: &Percentiles, name: impl Fn(i64) -> String) {
    text.line("   Percentiles");
    for (label, value) in [
        ("50th", found.p50),
        ("75th", found.p75),
        ("95th", found.p95),
        ("98th", found.p98),
        ("99th", found.p99),
    ] {
        text.line(&format!("   {label:10}{}", name(value)));
    }
}

/// Lines of `label: value (comment)`.
#[derive(Default)]
struct Text {
    out: String,
}

impl Text {
    /// Trims trailing spaces of lines without a value.
    fn line(&mut self, line: &str) {
        self.out.push_str(line.trim_end());
        self.out.push('\n');
    }

    fn field(&mut self, label: &str, value: impl Display) {
        self.line(&format!("{label}: {value}"));
    }

    fn commented(&mut self, label: &str, value: impl Display, comment: Option<String>) {
        match comment {
            Some(comment) => self.line(&format!("{label}: {value} ({comment})")),
            None => self.field(label, value),
        }
    }

    fn optional(&mut self, label: &str, value: Option<impl Display>) {
        match value {
            Some(value) => self.field(label, value),
            None => self.field(label, "--"),
        }
    }

    fn micros(&mut self, label: &str, micros: i64) {
        self.commented(
            label,
            date_string_of_micros(micros),
            Some(micros.to_string()),
        );
    }

    fn deletion(&mut self, label: &str, seconds: Option<i64>) {
        match seconds {
            Some(seconds) => {
                self.commented(
                    label,
                    date_string_of_seconds(seconds),
                    Some(seconds.to_string()),
                );
            }
            None => self.commented(label, "no tombstones", Some(i64::MAX.to_string())),
        }
    }

    fn bytes(&mut self, label: &str, bytes: u64) {
        self.commented(label, bytes, words::bytes(bytes));
    }
}
