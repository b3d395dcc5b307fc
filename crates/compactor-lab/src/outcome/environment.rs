//! The machine.

use serde::{Deserialize, Serialize};

/// Machine that an experiment took place on. `None`: the system does not report it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// Version of compactor.
    pub compactor_version: String,
    /// Commit that it was built from.
    pub commit: Option<String>,
    /// Compiler and profile that it was built with.
    pub build: String,
    /// Kernel release and version.
    pub kernel: String,
    /// Architecture, such as `x86_64`.
    pub architecture: String,
    /// Model of the processor.
    pub cpu: Option<String>,
    /// Processors that the process may use.
    pub processors: u32,
    /// Bytes of memory of the machine.
    pub memory_bytes: Option<u64>,
    /// Length of a page.
    pub page_bytes: u64,
    /// The hypervisor or container that it runs in, if that is visible.
    pub virtualisation: Option<String>,
    /// Type of the file system.
    pub file_system: Option<String>,
    /// Mount point.
    pub mounted_on: Option<String>,
    /// Options of the mount.
    pub mount_options: Option<String>,
    /// The device under it.
    pub device: Option<DeviceRecord>,
    /// Whether direct I/O works: `yes`, or why not.
    pub direct_io: String,
    /// Alignment of direct I/O, bytes.
    pub direct_alignment_bytes: Option<u64>,
    /// Whether `RWF_DONTCACHE` works: `yes`, or why not.
    pub dontcache: String,
    /// Whether io_uring works: `yes`, or why not.
    pub io_uring: String,
    /// Whether `cachestat(2)` works: `yes`, or why not.
    pub cachestat: String,
    /// Whether the multi-generational LRU decides on eviction; `None` if the kernel has none.
    pub mglru: Option<bool>,
    /// Whether DAMON is active, which may evict pages that were not used recently even if memory is free;
    /// `None` if the kernel has none or does not report it.
    #[serde(default)]
    pub damon: Option<bool>,
    /// `v1`, `v2`, or why there was none.
    pub memory_cgroup: String,
    /// Settings of `/proc/sys/vm`: `dirty_ratio`, `dirty_background_ratio`, `swappiness` and their like, as
    /// name and value.
    pub vm_settings: Vec<(String, String)>,
    /// Load averages of 1, 5 and 15 minutes before the first run.
    pub load_before: Option<[f64; 3]>,
}

/// A block device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceRecord {
    /// Name, such as `nvme0n1p2`.
    pub name: String,
    /// Model, as the device reports it.
    pub model: Option<String>,
    /// Devices that it is made of.
    pub made_of: Vec<String>,
    /// I/O scheduler in use.
    pub scheduler: Option<String>,
    /// Readahead of buffered reads, KiB.
    pub read_ahead_kb: Option<u64>,
    /// Longest request, KiB.
    pub max_sectors_kb: Option<u64>,
    /// Whether it reports to be a spinning disk.
    pub rotational: Option<bool>,
    /// Logical block length.
    pub logical_block_bytes: Option<u64>,
    /// `write back` or `write through`.
    pub write_cache: Option<String>,
    /// Whether it is a virtual disk, whose host may have a cache of its own.
    pub is_virtual: bool,
}
