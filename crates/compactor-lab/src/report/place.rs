//! Where and how an outcome was measured, as names and values.

use super::units::{bytes, seconds, significant, utc};
use super::{PointReport, Report};
use crate::outcome::{DataRecord, DeviceRecord, Distribution, End, Environment, OptionsRecord};
use crate::text_table::{count, counted};

/// What was done.
pub(super) fn experiment(report: &Report<'_>) -> Vec<(&'static str, String)> {
    let outcome = report.outcome;
    let options = &outcome.options;
    let mut lines = vec![(
        "experiment",
        format!(
            "{}, {}{}",
            utc(outcome.started_at_ms),
            seconds(outcome.elapsed_s),
            match outcome.end {
                End::Complete => "",
                End::Interrupted => ", INTERRUPTED: not all runs took place",
            }
        ),
    )];
    if let Some(command) = &options.command {
        lines.push(("command", command.join(" ")));
    }
    lines.push(("bystander", bystander(options)));
    lines.push((
        "compaction",
        format!(
            "{}; at {} priority, again and again for {}",
            compaction(
                options.throughput_bytes_per_s,
                options.compaction_threads,
                options.compaction_memory_bytes,
                &options.backend,
            ),
            options.compaction_priority,
            seconds(options.least_compaction_s),
        ),
    ));
    lines.push((
        "repeats",
        format!(
            "{} of each arm, in an order drawn anew each time (seed {}), after {}; {} before and {} \
             after the compaction",
            options.repeats,
            options.seed,
            counted(u64::from(options.warm_ups), "warm-up"),
            seconds(options.before_s),
            seconds(options.after_s),
        ),
    ));
    lines
}

fn bystander(options: &OptionsRecord) -> String {
    format!(
        "{} reads/s by {}, {}; latency from the moment a read was to start",
        significant(options.rate_per_s),
        counted(u64::from(options.reader_threads), "thread"),
        popularity(options.distribution),
    )
}

/// How often each hot row is read.
pub(super) fn popularity(distribution: Distribution) -> String {
    match distribution {
        Distribution::Uniform => "all hot partitions alike".to_owned(),
        Distribution::Zipf { exponent } => format!("zipf {}", significant(exponent)),
    }
}

/// How the compaction went about it.
pub(super) fn compaction(
    throughput_bytes_per_s: Option<u64>,
    threads: u32,
    memory_bytes: u64,
    backend: &str,
) -> String {
    let limit = throughput_bytes_per_s.map_or_else(
        || "as fast as it can".to_owned(),
        |limit| format!("at most {}/s", bytes(limit as f64)),
    );
    format!(
        "{limit}, {}, {} of buffers, backend {backend}",
        counted(u64::from(threads), "thread"),
        bytes(memory_bytes as f64),
    )
}

/// The machine.
pub(crate) fn machine(environment: &Environment) -> Vec<(&'static str, String)> {
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

/// The hot set of a point and the memory that it had.
pub(super) fn pressure(point: &PointReport<'_>) -> String {
    let limit = match point.point.memory_limit_bytes {
        Some(limit) => format!("under a limit of {} of memory", bytes(limit as f64)),
        None => "without a limit on memory".to_owned(),
    };
    let room = point
        .point
        .cache_room_bytes
        .map_or_else(String::new, |room| {
            format!(", {} of it left to the page cache", bytes(room as f64))
        });
    format!(
        "Hot set {}, {limit}{room}: pressure {}",
        bytes(point.hot_set_bytes as f64),
        significant(point.pressure)
    )
}

/// The table of a point.
pub(super) fn data(point: &PointReport<'_>) -> String {
    table(&point.point.data)
}

/// A table.
pub(super) fn table(data: &DataRecord) -> String {
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
