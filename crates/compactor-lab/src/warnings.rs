//! Caveats that machine and options show before anything is measured.

use compactor_io::BackendKind;

use crate::caveats::Warnings;
use crate::options::InterferenceOptions;
use crate::outcome::{DataRecord, Environment, Warning};
use crate::report::units::bytes;

/// Share of the limit below which hot set and compaction fit together.
const LITTLE_PRESSURE: f64 = 0.1;
/// Load per processor before the experiment, above which other processes distort it.
const MUCH_LOAD: f64 = 0.5;

/// Caveats about the machine, whatever is measured on it; `is_limited`: whether a memory limit was requested.
pub(crate) fn of_machine(environment: &Environment, is_limited: bool) -> Vec<Warning> {
    let mut found = Warnings::default();
    found.when(cfg!(debug_assertions), "debug_build", || {
        "this is a debug build, many times slower than one with --release".to_owned()
    });
    let device = environment.device.as_ref();
    if let Some(device) = device.filter(|device| device.is_virtual) {
        found.when(true, "virtual_disk", || {
            format!(
                "{} is a virtual disk: its host may cache what is read and written past this machine's \
                 page cache, and may share it with others",
                device.name
            )
        });
    }
    found.when(device.is_none(), "no_block_device", || {
        let file_system = environment.file_system.as_deref();
        format!(
            "no block device is known under {}: its queue is not sampled, and there may be none",
            file_system.unwrap_or("the directory")
        )
    });
    let load = environment.load_before.map_or(0.0, |[load, ..]| load);
    let is_busy = load > MUCH_LOAD * f64::from(environment.processors);
    found.when(is_busy, "busy_machine", || {
        format!(
            "the load was {load:.1} on {} processors before anything was started: other processes distort the measurements",
            environment.processors
        )
    });
    found.when(environment.damon == Some(true), "damon", || {
        "DAMON is active on this machine: it may evict pages that were not read for a while, whatever a \
         compaction does"
            .to_owned()
    });
    let cgroup = &environment.memory_cgroup;
    let is_missing = is_limited && !cgroup.starts_with('v');
    found.when(is_missing, "no_memory_limit", || {
        format!(
            "there is no memory limit ({cgroup}): the page cache had the whole machine to itself"
        )
    });
    let cachestat = &environment.cachestat;
    found.when(cachestat != "yes", "no_cachestat", || {
        format!("cachestat does not work ({cachestat}): dirty pages are not counted")
    });
    found.0
}

/// Caveats about the machine and the options.
pub(crate) fn of_environment(
    environment: &Environment,
    options: &InterferenceOptions,
) -> Vec<Warning> {
    let is_limited = options.memory_limit_bytes.is_some();
    let mut found = Warnings(of_machine(environment, is_limited));
    let two_backends = options.arms.iter().any(|arm| arm.is_dontcache())
        && options.backend != BackendKind::Threads
        && environment.io_uring == "yes";
    found.when(two_backends, "two_backends", || {
        "mode dontcache is performed by threads, the others by io_uring; --backend threads makes them equal"
            .to_owned()
    });
    let is_unlimited = options.throughput_bytes_per_s.is_none();
    found.when(is_unlimited, "no_throughput_limit", || {
        "compactions ran as fast as they could: arms differ in rate as well, and a slower one disturbs reads less, for longer"
            .to_owned()
    });
    found.0
}

/// Caveat about a hot set that is smaller than requested.
pub(crate) fn small_hot_set(found: &mut Warnings, hot_bytes: u64, asked_bytes: u64) {
    found.when(hot_bytes < asked_bytes / 10 * 9, "small_hot_set", || {
        format!(
            "the table has only {} of pages, less than the requested hot set of {}; use more data",
            bytes(hot_bytes as f64),
            bytes(asked_bytes as f64)
        )
    });
}

/// Caveats about one size of the hot set, of `room_bytes` of memory, of which the compaction itself takes `own_bytes`.
pub(crate) fn of_point(
    data: &DataRecord,
    hot_bytes: u64,
    asked_bytes: u64,
    room_bytes: u64,
    own_bytes: u64,
) -> Vec<Warning> {
    let mut found = Warnings::default();
    small_hot_set(&mut found, hot_bytes, asked_bytes);
    // Inputs, the output, which is as long at most, and that of the compaction before, which stays until it is replaced.
    let is_known = room_bytes < u64::MAX;
    let all_bytes = data.bytes.saturating_mul(3).saturating_add(hot_bytes);
    let all_fits = is_known && all_bytes < room_bytes.saturating_sub(own_bytes);
    found.when(all_fits, "everything_fits", || {
        format!(
            "inputs, outputs, hot set and the compaction's own memory fit into {} MiB together: nothing has to be \
             evicted, and no mode can be better for it; use more data or a lower --memory-limit",
            room_bytes >> 20
        )
    });
    let pressure = hot_bytes as f64 / room_bytes as f64;
    let is_little = !all_fits && pressure < LITTLE_PRESSURE;
    found.when(is_little, "little_pressure", || {
        format!(
            "the hot set is only {:.1}% of the memory it may take: the kernel keeps so small a set cached in \
             every mode",
            100.0 * pressure
        )
    });
    found.0
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// Kinds of the warnings about a table of 1000 MiB with a requested and an actual hot set.
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
        let found = of_point(&data, hot, asked, limit.unwrap_or(100_000 * MIB), 64 * MIB);
        let kinds: Vec<&str> = found.iter().map(|w| w.kind.as_str()).collect();
        kinds.join(" ")
    }

    #[test]
    fn too_little_pressure_is_reported() {
        assert_eq!(kinds(100 * MIB, 100 * MIB, Some(500 * MIB)), "");
        let little = kinds(40 * MIB, 40 * MIB, Some(500 * MIB));
        assert_eq!(little, "little_pressure");
        // Inputs, two outputs as long, hot rows and the compaction's own memory: 3164 MiB.
        let fits = kinds(100 * MIB, 100 * MIB, Some(3165 * MIB));
        assert_eq!(fits, "everything_fits");
        let almost = kinds(100 * MIB, 100 * MIB, Some(3164 * MIB));
        assert_eq!(almost, "little_pressure");
        // Without a limit there is all of the machine's memory.
        assert_eq!(kinds(100 * MIB, 100 * MIB, None), "everything_fits");
        let small = kinds(400 * MIB, 300 * MIB, Some(500 * MIB));
        assert_eq!(small, "small_hot_set");
    }
}
