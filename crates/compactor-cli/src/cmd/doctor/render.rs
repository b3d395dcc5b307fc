//! The findings as text.

use std::fmt::Write;

use super::findings::{Chosen, Device, Finding, Findings, Limit, Status};
use crate::flags::ByteSize;
use crate::text_table::wrapped;

/// Width of the labels.
const LABEL: usize = 16;

/// The findings for people.
pub fn text(findings: &Findings) -> String {
    let mut text = String::new();
    let f = findings;
    let mut line = |mark: &str, label: &str, value: &str| {
        // Writing to a string does not fail.
        let _ = writeln!(text, "  {mark:<4}{label:<LABEL$}{value}");
    };
    let mount = f.mount.as_ref().map_or_else(
        || "unknown".to_owned(),
        |m| {
            format!(
                "{} on {}, from {} ({})",
                m.file_system, m.mounted_on, m.source, m.options
            )
        },
    );
    line("", "file system", &mount);
    match &f.device {
        Some(found) => device(found, &mut line),
        None => line("", "device", "none, or unknown"),
    }
    line("", "kernel", &f.kernel);
    let eviction = match f.multi_generational_lru {
        Some(true) => "multi-generational LRU",
        Some(false) => "active and inactive lists (the multi-generational LRU is off)",
        None => "active and inactive lists",
    };
    line("", "page eviction", eviction);
    line("", "", "");
    line(mark(&f.writable), "writable", &text_of(&f.writable, "yes"));
    let direct = f.direct_io_alignment.map_or_else(
        || "works".to_owned(),
        |a| {
            format!(
                "works; memory aligned to {}, offsets to {}",
                a.memory_bytes, a.offset_bytes
            )
        },
    );
    line(
        mark(&f.direct_io),
        "direct I/O",
        &text_of(&f.direct_io, &direct),
    );
    line(
        mark(&f.io_uring),
        "io_uring",
        &text_of(&f.io_uring, "works"),
    );
    line(
        mark(&f.dontcache),
        "RWF_DONTCACHE",
        &text_of(&f.dontcache, "works"),
    );
    line(
        mark(&f.cachestat),
        "cachestat",
        &text_of(&f.cachestat, "works"),
    );
    line(
        mark(&f.page_counts),
        "page counts",
        &text_of(&f.page_counts, "are reported"),
    );
    let bytes = |bytes: u64| ByteSize(bytes).to_string();
    line(
        "",
        "locked memory",
        &limit(f.locked_memory_bytes, bytes, ""),
    );
    let raised = "; merge raises it by itself";
    line(
        "",
        "open files",
        &limit(f.open_files, |n| n.to_string(), raised),
    );
    line("", "", "");
    line("", "auto chooses", "");
    for (option, choice) in [
        ("--read-io", &f.auto.read),
        ("--write-io", &f.auto.write),
        ("--backend", &f.auto.backend),
    ] {
        line("", option, &chosen(choice));
    }
    let mut out = format!("{}\n", f.directory);
    out.extend(text.lines().flat_map(|line| [line.trim_end(), "\n"]));
    out.push('\n');
    if f.advice.is_empty() {
        out.push_str("  * everything that compactor can use works here\n");
    }
    for advice in &f.advice {
        out.push_str(&wrapped("  * ", advice));
    }
    out
}

fn device(device: &Device, line: &mut impl FnMut(&str, &str, &str)) {
    let unknown = || "unknown".to_owned();
    let kib = |kib: Option<u64>| kib.map_or_else(unknown, |n| format!("{n} KiB"));
    let bytes = |n: Option<u64>| n.map_or_else(unknown, |n| n.to_string());
    let name = match &device.made_of[..] {
        [] => device.name.clone(),
        parts => format!("{} (made of {})", device.name, parts.join(", ")),
    };
    let kind = match device.rotational {
        Some(true) => ", reports itself as a spinning disk (virtual disks often do)",
        _ => "",
    };
    line("", "device", &format!("{name}{kind}"));
    line(
        "",
        "scheduler",
        device.scheduler.as_deref().unwrap_or("unknown"),
    );
    line(
        "",
        "read_ahead_kb",
        &format!("{}, of buffered reads", kib(device.read_ahead_kb)),
    );
    line(
        "",
        "max_sectors_kb",
        &format!("{}, the longest request", kib(device.max_sectors_kb)),
    );
    line(
        "",
        "blocks",
        &format!(
            "logical {}, physical {} bytes; write cache: {}",
            bytes(device.logical_block_bytes),
            bytes(device.physical_block_bytes),
            device.write_cache.as_deref().unwrap_or("unknown")
        ),
    );
}

fn mark(finding: &Finding) -> &'static str {
    match finding.status {
        Status::Works => "[+]",
        Status::Fails => "[-]",
        Status::Unknown => "[?]",
    }
}

fn text_of(finding: &Finding, works: &str) -> String {
    let reason = finding.reason.as_deref().unwrap_or("no reason was given");
    match finding.status {
        Status::Works => works.to_owned(),
        Status::Fails => format!("no: {reason}"),
        Status::Unknown => format!("unknown: {reason}"),
    }
}

fn limit(limit: Limit, show: impl Fn(u64) -> String, raised: &str) -> String {
    match (limit.soft, limit.hard) {
        (None, _) => "unlimited".to_owned(),
        (Some(soft), Some(hard)) if soft == hard => show(soft),
        (Some(soft), Some(hard)) => format!("{}, at most {}{raised}", show(soft), show(hard)),
        (Some(soft), None) => format!("{}, at most unlimited{raised}", show(soft)),
    }
}

fn chosen(choice: &Chosen) -> String {
    format!("{:<9} {}", choice.mode, choice.reason)
}
