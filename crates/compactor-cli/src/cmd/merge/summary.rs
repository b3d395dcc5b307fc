//! Summary of a merge or its plan, as text or JSON.

use std::fmt::Write;

use compactor::table::OpenedMerge;
use compactor::{CompressionReport, MergeJob, MergeReport, Merged, OutputSplit, Scope};

use crate::flags::{ByteSize, Format};
use crate::output_args::{json, show_next_steps};
use crate::text_table::{count, counted, known};
use crate::ttl_removed;

/// Width of the labels.
const LABEL: usize = 12;

/// The summary of a merge: one report, or one for each repair state of the inputs.
pub fn merged(merged: &Merged, format: Format) -> anyhow::Result<String> {
    let (reports, next_steps) = (&merged.reports[..], &merged.next_steps);
    if format == Format::Json {
        if let [only] = reports {
            return json(only, next_steps);
        }
        let total = |of: fn(&MergeReport) -> u64| -> u64 { reports.iter().map(of).sum() };
        let groups = serde_json::json!({
            "groups": reports,
            "outputs": reports.iter().flat_map(|r| &r.outputs).collect::<Vec<_>>(),
            "warnings": reports.iter().flat_map(|r| &r.warnings).collect::<Vec<_>>(),
            "input_bytes": total(|r| r.input_bytes),
            "output_bytes": total(|r| r.output_bytes),
            "rows_read": total(|r| r.rows_read),
            "rows_written": total(|r| r.rows_written),
            "elapsed_s": reports.iter().map(|r| r.elapsed_s).sum::<f64>(),
        });
        return json(&groups, next_steps);
    }
    let mut text = String::new();
    for group in reports {
        if reports.len() > 1 {
            writeln!(text, "{}:", group.repair.state)?;
        }
        text.push_str(&report(group)?);
    }
    show_next_steps(next_steps, &mut text)?;
    Ok(text)
}

fn report(report: &MergeReport) -> anyhow::Result<String> {
    let mut text = String::new();
    let r = report;
    match &r.outputs[..] {
        [output] => writeln!(
            text,
            "merged {} into {} in {:.2} s",
            sstables(r.inputs.len() + r.fully_expired.len()),
            output.data_path.display(),
            r.elapsed_s
        )?,
        [first, .., last] => writeln!(
            text,
            "merged {} into {} of them in {:.2} s, {} to {}",
            sstables(r.inputs.len() + r.fully_expired.len()),
            r.outputs.len(),
            r.elapsed_s,
            first.data_path.display(),
            last.data_path.display()
        )?,
        [] => writeln!(
            text,
            "merged {} in {:.2} s: nothing is left, so there is no output",
            sstables(r.inputs.len() + r.fully_expired.len()),
            r.elapsed_s
        )?,
    }
    if let Some(removed) = &r.ttl_removed {
        writeln!(text, "{}", ttl_removed::line(removed))?;
    }
    let mut line = |label: &str, value: String| writeln!(text, "  {label:<LABEL$}{value}");
    line(
        "input",
        format!(
            "{} on disk, {} uncompressed",
            ByteSize(r.input_bytes),
            ByteSize(r.input_uncompressed_bytes)
        ),
    )?;
    if r.passes > 1 {
        let why = "more inputs than memory or descriptors allow at a time";
        line("passes", format!("{}: {why}", r.passes))?;
    }
    if r.ranges > 1 {
        line(
            "ranges",
            format!("{}, several at a time", count(r.ranges as u64)),
        )?;
    }
    if !r.fully_expired.is_empty() {
        line(
            "dropped",
            format!("{} unread: fully expired", sstables(r.fully_expired.len())),
        )?;
    }
    if !r.outputs.is_empty() {
        line(
            "output",
            format!(
                "{} on disk, {} uncompressed; version {}, {}",
                ByteSize(r.output_bytes),
                ByteSize(r.output_uncompressed_bytes),
                r.output_version,
                compression(r.output_compression.as_ref())
            ),
        )?;
    }
    line(
        "partitions",
        format!(
            "{} read, {} written",
            count(r.partitions_read),
            count(r.partitions_written)
        ),
    )?;
    if let Some(merge_counts) = &r.merge_counts {
        let merge_counts = merge_counts
            .iter()
            .zip(1..)
            .filter(|(partitions, _)| **partitions > 0)
            .map(|(partitions, inputs): (&u64, u32)| format!("{inputs}:{}", count(*partitions)))
            .collect::<Vec<_>>()
            .join(", ");
        line("", format!("merge counts {{{merge_counts}}}"))?;
    }
    line(
        "rows",
        format!(
            "{} read, {} written",
            count(r.rows_read),
            count(r.rows_written)
        ),
    )?;
    line("purged", purged(r))?;
    let dropped = [
        (r.purged.of_dropped_columns, "cell", "of dropped columns"),
        (
            r.purged.shadowed,
            "item",
            "that overlapping SSTables shadow",
        ),
        (
            r.purged.without_liveness,
            "row",
            "of a view without liveness",
        ),
    ];
    for (number, noun, which) in dropped {
        if number > 0 {
            line("", format!("{} {which}", counted(number, noun)))?;
        }
    }
    line(
        "throughput",
        format!(
            "{}/s of uncompressed input; {:.2} s of CPU, peak memory {}",
            ByteSize(r.input_uncompressed_bytes_per_s as u64),
            r.cpu_s,
            ByteSize(r.peak_rss_bytes)
        ),
    )?;
    line(
        "I/O",
        format!(
            "read {}, written {}, backend {}",
            if r.io.read_mode.is_empty() {
                "nothing"
            } else {
                &r.io.read_mode
            },
            r.io.write_mode.as_deref().unwrap_or("nothing"),
            r.io.backend
        ),
    )?;
    let cache = &r.page_cache;
    line(
        "page cache",
        format!(
            "{} of {} input pages resident ({} before), {} of {} output pages",
            known(cache.input_pages_resident),
            count(cache.input_pages),
            known(cache.input_pages_resident_before),
            known(cache.output_pages_resident),
            count(cache.output_pages)
        ),
    )?;
    for note in r.io.fallbacks.iter().chain(&r.warnings) {
        writeln!(text, "note: {note}")?;
    }
    Ok(text)
}

/// Plan of a merge.
pub fn plan(opened: &OpenedMerge, format: Format) -> anyhow::Result<String> {
    let jobs = opened.jobs();
    let notes: Vec<&str> = (opened.notes().iter().chain(opened.warnings()))
        .map(String::as_str)
        .collect();
    if let [only] = jobs {
        return plan_of(only, &notes, format);
    }
    if format == Format::Json {
        let groups = jobs
            .iter()
            .map(|job| Ok(serde_json::from_str(&plan_of(job, &[], format)?)?))
            .collect::<anyhow::Result<Vec<serde_json::Value>>>()?;
        return Ok(serde_json::to_string_pretty(&serde_json::json!({
            "dry_run": true,
            "groups": groups,
            "warnings": notes,
        }))?);
    }
    let mut text = String::new();
    for job in jobs {
        writeln!(text, "{}:", job.repair_group())?;
        text.push_str(&plan_of(job, &[], format)?);
    }
    for note in notes {
        writeln!(text, "note: {note}")?;
    }
    Ok(text)
}

fn plan_of(job: &MergeJob, notes: &[&str], format: Format) -> anyhow::Result<String> {
    let settings = job.settings();
    let options = job.options();
    let scope = match &options.scope {
        Scope::Unknown => "unknown: every tombstone is kept".to_owned(),
        Scope::Complete => "the inputs are the whole table".to_owned(),
        Scope::Overlapping(_) | Scope::RestOfSet => {
            format!("{} overlap", sstables(job.overlapping().len()))
        }
    };
    let outputs = match options.split {
        OutputSplit::Count(outputs) => Some(outputs.get()),
        _ => None,
    };
    // If the table's other SSTables are unknown, nothing is purged, however old.
    let gc_before_s = options
        .gc_before_s
        .filter(|_| options.scope != Scope::Unknown);
    if format == Format::Json {
        let inputs: Vec<_> = job
            .inputs()
            .iter()
            .map(|i| {
                serde_json::json!({
                    "data_path": i.data_path().display().to_string(),
                    "version": i.descriptor.version.name(),
                    "bytes": i.disk_len(),
                    "uncompressed_bytes": i.data_len(),
                })
            })
            .collect();
        return Ok(serde_json::to_string_pretty(&serde_json::json!({
            "dry_run": true,
            "repair": job.repair_group().to_string(),
            "inputs": inputs,
            "fully_expired": job.fully_expired().iter().map(|i| i.data_path().display().to_string()).collect::<Vec<_>>(),
            "output": settings.descriptor.path(compactor_sstable::Component::Data).display().to_string(),
            "output_count": outputs,
            "max_sstable_bytes": options.split.max_bytes(),
            "output_compression": settings.compression.as_ref().map(CompressionReport::from),
            "input_uncompressed_bytes": job.uncompressed_bytes(),
            "expected_partitions": settings.expected_keys,
            "now_s": options.now_s,
            "gc_before_s": gc_before_s,
            "strip_ttl": options.strip_ttl,
            "scope": scope,
            "shadow_sources": job.shadow_sources(),
            "warnings": notes,
        }))?);
    }
    let mut text = String::new();
    let all = job.inputs().len() + job.fully_expired().len();
    let data = settings.descriptor.path(compactor_sstable::Component::Data);
    writeln!(
        text,
        "would merge {} into {}",
        sstables(all),
        data.display()
    )?;
    for input in job.inputs() {
        writeln!(
            text,
            "  read        {} ({} on disk, {} uncompressed)",
            input.data_path().display(),
            ByteSize(input.disk_len()),
            ByteSize(input.data_len())
        )?;
    }
    for input in job.fully_expired() {
        writeln!(
            text,
            "  drop unread {} (fully expired)",
            input.data_path().display()
        )?;
    }
    let compression = compression(
        settings
            .compression
            .as_ref()
            .map(CompressionReport::from)
            .as_ref(),
    );
    writeln!(
        text,
        "  output      version {}, {compression}",
        settings.descriptor.version
    )?;
    if let Some(outputs) = outputs {
        writeln!(
            text,
            "  outputs     at most {outputs}, of similar size; the first is named above"
        )?;
    }
    if let Some(max) = options.split.max_bytes() {
        writeln!(
            text,
            "  size        at most {} and a partition each; more SSTables if need be",
            ByteSize(max)
        )?;
    }
    writeln!(
        text,
        "  partitions  about {}",
        count(settings.expected_keys)
    )?;
    writeln!(text, "  scope       {scope}")?;
    if job.shadow_sources() > 0 {
        writeln!(
            text,
            "  shadow      {} outside the merge, by {}",
            sstables(job.shadow_sources()),
            options.overlapping_tombstones.name()
        )?;
    }
    if options.strip_ttl {
        writeln!(
            text,
            "  TTL         removed from all cells and rows: they never expire"
        )?;
    }
    match gc_before_s {
        Some(gc_before_s) => writeln!(
            text,
            "  purging     deletions before {gc_before_s} (now is {})",
            options.now_s
        )?,
        None => writeln!(text, "  purging     nothing")?,
    }
    for note in notes {
        writeln!(text, "note: {note}")?;
    }
    Ok(text)
}

fn sstables(number: usize) -> String {
    counted(number as u64, "SSTable")
}

fn compression(compression: Option<&CompressionReport>) -> String {
    match compression {
        None => "not compressed".to_owned(),
        Some(c) => {
            let chunk_length = ByteSize(c.chunk_length_bytes.into());
            format!("{}, {chunk_length} chunks", c.compressor)
        }
    }
}

fn purged(report: &MergeReport) -> String {
    let p = &report.purged;
    if p.total == 0 {
        return "nothing".to_owned();
    }
    let kinds = [
        (p.partition_deletions, "partition deletion"),
        (p.row_deletions, "row deletion"),
        (p.range_tombstone_bounds, "range tombstone bound"),
        (p.complex_deletions, "collection deletion"),
        (p.cell_tombstones, "cell tombstone"),
        (p.expired, "expired value"),
    ];
    let kinds: Vec<String> = kinds
        .iter()
        .filter(|(n, _)| *n > 0)
        .map(|(n, kind)| counted(*n, kind))
        .collect();
    format!("{} ({})", counted(p.total, "tombstone"), kinds.join(", "))
}
