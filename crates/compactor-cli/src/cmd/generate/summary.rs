//! Summary of generated data, as text or JSON.

use std::fmt::Write;

use compactor::generate::GenerateReport;

use crate::flags::{ByteSize, Format};
use crate::text_table::{count, counted};

/// The summary.
pub fn report(report: &GenerateReport, format: Format) -> anyhow::Result<String> {
    if format == Format::Json {
        return Ok(serde_json::to_string_pretty(report)?);
    }
    let mut text = String::new();
    let r = report;
    writeln!(
        text,
        "generated {} of shape {} in {:.2} s",
        counted(r.sstables.len() as u64, "SSTable"),
        r.shape,
        r.elapsed_s
    )?;
    for sstable in &r.sstables {
        let name = sstable
            .data_path
            .file_name()
            .map(|n| n.to_string_lossy())
            .unwrap_or_default();
        writeln!(
            text,
            "  {name:<20}  {:>9} on disk, {:>9} uncompressed, {}, {}",
            ByteSize(sstable.bytes).to_string(),
            ByteSize(sstable.uncompressed_bytes).to_string(),
            counted(sstable.partitions, "partition"),
            counted(sstable.rows, "row"),
        )?;
    }
    let compression = match &r.compression {
        None => "not compressed".to_owned(),
        Some(c) => format!(
            "{}, {} chunks, ratio {:.2}",
            c.compressor,
            ByteSize(c.chunk_length_bytes.into()),
            r.compression_ratio
        ),
    };
    writeln!(text, "  version     {}, {compression}", r.version)?;
    writeln!(
        text,
        "  throughput  {}/s uncompressed; {:.2} s of CPU, peak memory {}, written {}",
        ByteSize(r.uncompressed_bytes_per_s as u64),
        r.cpu_s,
        ByteSize(r.peak_rss_bytes),
        r.write_mode
    )?;
    writeln!(
        text,
        "  total       {}, {}",
        counted(r.partitions, "partition"),
        rows(r)
    )?;
    for note in &r.fallbacks {
        writeln!(text, "note: {note}")?;
    }
    writeln!(
        text,
        "they and their schema.cql are in\n{}",
        r.table_directory.display()
    )?;
    Ok(text)
}

fn rows(report: &GenerateReport) -> String {
    format!("{} rows", count(report.rows))
}
