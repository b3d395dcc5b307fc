//! Summary of a compaction or its plan, as text or JSON.

use std::fmt::Write;
use std::path::Path;

use compactor::compact::{CompactReport, PlannedInput, Replacement};
use compactor::table::plan::PlannedKind;
use compactor::table::{NextSteps, OpenedCompaction};

use crate::flags::{ByteSize, Format};
use crate::output_args::{json, show_next_steps};
use crate::text_table::counted;
use crate::ttl_removed;

/// Planned compactions.
pub fn plan(opened: &OpenedCompaction, format: Format) -> anyhow::Result<String> {
    let (planned, unreadable) = (opened.planned(), opened.unreadable());
    let notes: Vec<&String> = opened.notes().iter().chain(opened.warnings()).collect();
    if format == Format::Json {
        return Ok(serde_json::to_string_pretty(&serde_json::json!({
            "dry_run": true,
            "compactions": planned,
            "failed": unreadable,
            "warnings": notes,
        }))?);
    }
    let mut text = String::new();
    let mut round = 0;
    for compaction in &planned {
        if compaction.round != round {
            round = compaction.round;
            let at_most = if round > 1 {
                ", if nothing becomes smaller"
            } else {
                ""
            };
            writeln!(text, "round {round}{at_most}:")?;
        }
        writeln!(
            text,
            "  {}: {} {} {} of {}, level {} ({})",
            compaction.number,
            match compaction.kind {
                PlannedKind::LevelOnly => "move",
                PlannedKind::DropExpired => "drop",
                _ => "merge",
            },
            sstables(compaction.inputs.len()),
            compaction.repair,
            ByteSize(compaction.data_bytes),
            compaction.level,
            compaction.reason
        )?;
        for input in &compaction.inputs {
            match input {
                PlannedInput::Sstable(path) => writeln!(text, "     {}", path.display())?,
                PlannedInput::OutputOf(number) => writeln!(text, "     outputs of {number}")?,
            }
        }
    }
    if !unreadable.is_empty() {
        let them = sstables(unreadable.len());
        writeln!(text, "{them} cannot be read, and nothing is made of them")?;
    }
    if planned.is_empty() {
        writeln!(text, "nothing to compact")?;
    }
    for note in notes {
        writeln!(text, "note: {note}")?;
    }
    Ok(text)
}

/// Result of a compaction.
pub fn report(
    report: &CompactReport,
    next_steps: &NextSteps,
    format: Format,
) -> anyhow::Result<String> {
    if format == Format::Json {
        return json(report, next_steps);
    }
    let mut text = String::new();
    let r = report;
    if r.compactions == 0 && r.level_changes == 0 {
        writeln!(
            text,
            "nothing was compacted of {}",
            sstables(r.sstables_before)
        )?;
    } else {
        writeln!(
            text,
            "compacted {} to {} by {} in {:.2} s: {} in {}",
            sstables(r.sstables_before),
            r.sstables_after,
            r.strategy,
            r.elapsed_s,
            counted(r.compactions as u64, "compaction"),
            counted(r.rounds as u64, "round")
        )?;
        writeln!(
            text,
            "  read        {}, written {}; {} of it final",
            ByteSize(r.bytes_read),
            ByteSize(r.bytes_written),
            ByteSize(r.output_bytes)
        )?;
        writeln!(text, "  purged      {}", counted(r.purged, "tombstone"))?;
        writeln!(
            text,
            "  throughput  {}/s of uncompressed input",
            ByteSize((r.uncompressed_bytes_read as f64 / r.elapsed_s.max(1e-9)) as u64)
        )?;
    }
    if r.level_changes > 0 {
        writeln!(
            text,
            "  levels      {} without a merge",
            counted(r.level_changes as u64, "change")
        )?;
    }
    if let Some(removed) = &r.ttl_removed {
        writeln!(text, "{}", ttl_removed::line(removed))?;
    }
    if r.passes > 1 {
        writeln!(text, "  passes      {}, at most", r.passes)?;
    }
    for output in &r.outputs {
        writeln!(
            text,
            "{}, {} {}, level {}",
            output.sstable.data_path.display(),
            ByteSize(output.sstable.bytes),
            output.repair,
            output.level
        )?;
    }
    for replacement in &r.replacements {
        write_replacement(&mut text, replacement)?;
    }
    if !r.gone.is_empty() {
        writeln!(
            text,
            "nothing is left, and nothing replaces {}:",
            sstables(r.gone.len())
        )?;
        for input in &r.gone {
            writeln!(text, "  {}", input.display())?;
        }
    }
    if !r.untouched.is_empty() {
        let stays = match r.untouched.len() {
            1 => "stays as it is",
            _ => "stay as they are",
        };
        writeln!(text, "{} {stays}", sstables(r.untouched.len()))?;
    }
    for note in &r.warnings {
        writeln!(text, "note: {note}")?;
    }
    show_next_steps(next_steps, &mut text)?;
    Ok(text)
}

fn write_replacement(text: &mut String, replacement: &Replacement) -> std::fmt::Result {
    let (outputs, inputs) = (&replacement.outputs, &replacement.replaces);
    match &outputs[..] {
        [one] => write!(text, "{} replaces", name(one))?,
        several => {
            let names: Vec<String> = several.iter().map(|path| name(path)).collect();
            write!(text, "{} replace together", names.join(", "))?;
        }
    }
    writeln!(text, " {}:", sstables(inputs.len()))?;
    for input in inputs {
        writeln!(text, "  {}", input.display())?;
    }
    Ok(())
}

fn name(path: &Path) -> String {
    let name = path.file_name().map(Path::new).unwrap_or(path);
    name.display().to_string()
}

fn sstables(number: usize) -> String {
    counted(number as u64, "SSTable")
}
