//! Caveats that machine and options show before anything is measured.

use compactor::io::{BackendKind, ReadMode, WriteMode};

use crate::arm::Arm;
use crate::options::InterferenceOptions;
use crate::outcome::{DataRecord, Environment, Warning};

/// Share of the limit below which hot set and compaction fit together.
const LITTLE_PRESSURE: f64 = 0.1;
/// Load per processor before the experiment, beyond which other processes disturb it.
const MUCH_LOAD: f64 = 0.5;

/// Caveats about the machine, whatever is measured on it; `is_limited`: whether a memory limit was asked for.
pub(crate) fn of_machine(environment: &Environment, is_limited: bool) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let mut warn = |kind: &str, text: String| warnings.push(Warning::new(kind, text));
    if cfg!(debug_assertions) {
        warn(
            "debug_build",
            "this is a debug build, many times slower than one with --release".to_owned(),
        );
    }
    match &environment.device {
        Some(device) if device.is_virtual => warn(
            "virtual_disk",
            format!(
                "{} is a virtual disk: its host may cache what is read and written past this \
                 machine's page cache, and may share it with others",
                device.name
            ),
        ),
        Some(_) => {}
        None => warn(
            "no_block_device",
            format!(
                "no block device is known under {}: its queue is not sampled, and there may be \
                 none",
                environment
                    .file_system
                    .as_deref()
                    .unwrap_or("the directory")
            ),
        ),
    }
    if let Some([load, ..]) = environment.load_before
        && load > MUCH_LOAD * f64::from(environment.processors)
    {
        warn(
            "busy_machine",
            format!(
                "the load was {load:.1} on {} processors before anything was started: others disturb",
                environment.processors
            ),
        );
    }
    if environment.damon == Some(true) {
        warn(
            "damon",
            "DAMON is at work on this machine: it may evict pages that were not read for a while, \
             whatever a compaction does"
                .to_owned(),
        );
    }
    if is_limited && !environment.memory_cgroup.starts_with('v') {
        warn(
            "no_memory_limit",
            format!(
                "there is no memory limit ({}): the page cache had the whole machine to itself",
                environment.memory_cgroup
            ),
        );
    }
    if environment.cachestat != "yes" {
        warn(
            "no_cachestat",
            format!(
                "cachestat does not work ({}): dirty pages are not counted",
                environment.cachestat
            ),
        );
    }
    warnings
}

/// Caveats about the machine and the options.
pub(crate) fn of_environment(
    environment: &Environment,
    options: &InterferenceOptions,
) -> Vec<Warning> {
    let mut warnings = of_machine(environment, options.memory_limit_bytes.is_some());
    let mut warn = |kind: &str, text: String| warnings.push(Warning::new(kind, text));
    let dontcache = options.arms.iter().any(|arm| {
        matches!(
            arm,
            Arm::Compaction {
                read: ReadMode::DontCache,
                ..
            } | Arm::Compaction {
                write: WriteMode::DontCache,
                ..
            }
        )
    });
    if dontcache && options.backend != BackendKind::Threads && environment.io_uring == "yes" {
        warn(
            "two_backends",
            "mode dontcache is carried by threads, the others by io_uring; --backend threads makes \
             them equal"
                .to_owned(),
        );
    }
    if options.throughput_bytes_per_s.is_none() {
        warn(
            "no_throughput_limit",
            "compactions ran as fast as they could: arms differ in rate as well, and a slower one \
             disturbs less and for longer"
                .to_owned(),
        );
    }
    warnings
}

/// Caveats about one size of the hot set.
pub(crate) fn of_point(
    data: &DataRecord,
    hot_bytes: u64,
    asked_bytes: u64,
    pressure: f64,
    limit_bytes: Option<u64>,
    memory_bytes: Option<u64>,
) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if hot_bytes < asked_bytes / 10 * 9 {
        warnings.push(Warning::new(
            "small_hot_set",
            format!(
                "the table has only {} MiB of pages to be hot, {} MiB were asked for; use more data",
                hot_bytes >> 20,
                asked_bytes >> 20
            ),
        ));
    }
    let room = limit_bytes.or(memory_bytes);
    // Inputs and output, which is as long at most.
    if let Some(room) = room.filter(|&room| 2 * data.bytes + hot_bytes < room) {
        warnings.push(Warning::new(
            "everything_fits",
            format!(
                "inputs, output and hot set fit into {} MiB of memory together: nothing has to be \
                 evicted, and no mode can be better for it; use more data or a lower --memory-limit",
                room >> 20
            ),
        ));
    } else if pressure < LITTLE_PRESSURE {
        warnings.push(Warning::new(
            "little_pressure",
            format!(
                "the hot set is {:.1}% of the memory it may take: the kernel keeps so little of it \
                 active without effort",
                100.0 * pressure
            ),
        ));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// Kinds of what is said of a table of 1000 MiB, with so much hot of it, asked for and had.
    fn kinds(asked: u64, hot: u64, limit: Option<u64>) -> String {
        let data = DataRecord {
            shape: "kv".to_owned(),
            version: "oa".to_owned(),
            compressor: None,
            chunk_length_bytes: None,
            sstables: 2,
            bytes: 1000 * MIB,
            uncompressed_bytes: 1000 * MIB,
            partitions: 1,
        };
        let memory = 100_000 * MIB;
        let pressure = hot as f64 / limit.unwrap_or(memory) as f64;
        let found = of_point(&data, hot, asked, pressure, limit, Some(memory));
        let kinds: Vec<&str> = found.iter().map(|w| w.kind.as_str()).collect();
        kinds.join(" ")
    }

    #[test]
    fn too_little_pressure_is_told() {
        assert_eq!(kinds(100 * MIB, 100 * MIB, Some(500 * MIB)), "");
        let little = kinds(40 * MIB, 40 * MIB, Some(500 * MIB));
        assert_eq!(little, "little_pressure");
        // Inputs, an output as long, hot rows: 2100 MiB.
        let fits = kinds(100 * MIB, 100 * MIB, Some(2101 * MIB));
        assert_eq!(fits, "everything_fits");
        // Without a limit there is all of the machine's memory.
        assert_eq!(kinds(100 * MIB, 100 * MIB, None), "everything_fits");
        let small = kinds(400 * MIB, 300 * MIB, Some(500 * MIB));
        assert_eq!(small, "small_hot_set");
    }
}
