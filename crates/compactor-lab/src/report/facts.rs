//! Facts on where and how an outcome was measured, as names and values.

use super::document::Facts;
use super::units::{bytes, seconds, significant, utc};
use crate::options::{Distribution, Setup};
use crate::outcome::{DataRecord, DeviceRecord, End, Environment};
use crate::text_table::{count, counted};

/// Time of an experiment, and its command line.
pub(crate) fn of_experiment(
    name: (&'static str, &str),
    started_at_ms: u64,
    elapsed_s: f64,
    end: &End,
    command: Option<&[String]>,
) -> Facts {
    let interrupted = match end {
        End::Complete => "",
        End::Interrupted => ", INTERRUPTED: not all runs took place",
    };
    let text = format!(
        "{}{}, {}{interrupted}",
        name.1,
        utc(started_at_ms),
        seconds(elapsed_s)
    );
    let mut facts = vec![(name.0, text)];
    facts.extend(command.map(|words| ("command", words.join(" "))));
    facts
}

/// Number of repeats of each of several things.
pub(crate) fn repeats(repeats: u32, what: &str, seed: u64, warm_ups: u32) -> String {
    format!(
        "{repeats} of each {what}, in an order drawn anew each time (seed {seed}), after {}",
        counted(u64::from(warm_ups), "warm-up"),
    )
}

/// Popularity of hot rows.
pub(crate) fn popularity(distribution: Distribution) -> String {
    match distribution {
        Distribution::Uniform => "all hot partitions alike".to_owned(),
        Distribution::Zipf { exponent } => format!("zipf {}", significant(exponent)),
    }
}

/// Rate, threads and buffers of a compaction.
pub(crate) fn compaction(setup: &Setup) -> String {
    let limit = setup.throughput_bytes_per_s.map_or_else(
        || "as fast as it can".to_owned(),
        |limit| format!("at most {}/s", bytes(limit.get() as f64)),
    );
    format!(
        "{limit}, {}, {} of buffers, backend {}",
        counted(setup.compaction_threads as u64, "thread"),
        bytes(setup.compaction_memory_bytes as f64),
        setup.backend,
    )
}

/// The machine.
pub(crate) fn machine(environment: &Environment) -> Facts {
    let or_unknown = |text: &Option<String>| text.clone().unwrap_or_else(|| "unknown".to_owned());
    let mut lines = vec![
        (
            "machine",
            format!(
                "{} processors ({}), {} of memory{}",
                environment.processors,
                or_unknown(&environment.cpu),
                environment
                    .memory_bytes
                    .map_or_else(|| "unknown".to_owned(), |b| bytes(b as f64)),
                environment
                    .virtualisation
                    .as_ref()
                    .map_or_else(String::new, |v| format!(", {v}")),
            ),
        ),
        (
            "kernel",
            format!("{} {}", environment.kernel, environment.architecture),
        ),
        (
            "file system",
            format!(
                "{} on {} ({})",
                or_unknown(&environment.file_system),
                or_unknown(&environment.mounted_on),
                or_unknown(&environment.mount_options)
            ),
        ),
    ];
    if let Some(device) = &environment.device {
        lines.push(("device", of_device(device)));
    }
    lines.push(("I/O", io(environment)));
    lines.push(("memory", memory(environment)));
    lines.push((
        "compactor",
        format!(
            "{} ({}), {}",
            environment.compactor_version,
            or_unknown(&environment.commit),
            environment.build
        ),
    ));
    lines
}

fn of_device(device: &DeviceRecord) -> String {
    let mut parts = vec![device.name.clone()];
    parts.extend(device.model.clone());
    if !device.made_of.is_empty() {
        parts.push(format!("of {}", device.made_of.join(" + ")));
    }
    if device.is_virtual {
        parts.push("virtual".to_owned());
    }
    if device.rotational == Some(true) && !device.is_virtual {
        parts.push("spinning".to_owned());
    }
    let named = [
        ("scheduler", device.scheduler.clone()),
        ("readahead KiB", device.read_ahead_kb.map(|n| n.to_string())),
        (
            "longest request KiB",
            device.max_sectors_kb.map(|n| n.to_string()),
        ),
        ("block", device.logical_block_bytes.map(|n| n.to_string())),
        ("cache", device.write_cache.clone()),
    ];
    for (name, value) in named {
        parts.extend(value.map(|value| format!("{name} {value}")));
    }
    parts.join(", ")
}

fn io(environment: &Environment) -> String {
    let alignment = environment
        .direct_alignment_bytes
        .map_or_else(String::new, |n| format!(" (aligned to {n})"));
    format!(
        "direct: {}{alignment}; dontcache: {}; io_uring: {}; cachestat: {}",
        environment.direct_io, environment.dontcache, environment.io_uring, environment.cachestat
    )
}

fn memory(environment: &Environment) -> String {
    let mut parts = vec![
        format!("pages of {}", bytes(environment.page_bytes as f64)),
        format!("cgroup {}", environment.memory_cgroup),
        match environment.mglru {
            Some(true) => "MGLRU on".to_owned(),
            Some(false) => "MGLRU off".to_owned(),
            None => "no MGLRU".to_owned(),
        },
    ];
    let settings = environment.vm_settings.iter();
    parts.extend(settings.map(|(name, value)| format!("{name} {value}")));
    if let Some(load) = environment.load_before {
        let load: Vec<String> = load.iter().map(|l| format!("{l:.2}")).collect();
        parts.push(format!("load before {}", load.join(" ")));
    }
    parts.join(", ")
}

/// A table.
pub(crate) fn table(data: &DataRecord) -> String {
    let compression = match (&data.compressor, data.chunk_length_bytes) {
        (Some(compressor), Some(chunk)) => {
            format!("{compressor} in chunks of {}", bytes(f64::from(chunk)))
        }
        (Some(compressor), None) => compressor.clone(),
        (None, _) => "not compressed".to_owned(),
    };
    format!(
        "Table ({}): {} of version {}, {compression}, {} ({} uncompressed), {}",
        data.shape,
        counted(u64::from(data.sstables), "SSTable"),
        data.version,
        bytes(data.bytes as f64),
        bytes(data.uncompressed_bytes as f64),
        format_args!("{} partitions", count(data.partitions)),
    )
}
