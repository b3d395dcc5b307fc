//! The library's findings, as `--format json` prints them.

use compactor_io::{BlockDevice, Choice, MountPoint, Probe, ProcessLimit, Support};
use serde::Serialize;

/// Findings about a directory.
#[derive(Clone, Debug, Serialize)]
pub struct Findings {
    /// The directory; bytes of its name that are not UTF-8 are replaced.
    pub directory: String,
    /// Whether files can be created in it.
    pub writable: Finding,
    /// Release of the kernel.
    pub kernel: String,
    /// The mount that the directory is on.
    pub mount: Option<Mount>,
    /// The block device under it.
    pub device: Option<Device>,
    /// `O_DIRECT`.
    pub direct_io: Finding,
    /// Alignment of direct requests.
    pub direct_io_alignment: Option<Alignment>,
    /// io_uring.
    pub io_uring: Finding,
    /// `RWF_DONTCACHE`.
    pub dontcache: Finding,
    /// `cachestat(2)`.
    pub cachestat: Finding,
    /// Whether the kernel reports how much of an existing file is in the page cache.
    pub page_counts: Finding,
    /// `RLIMIT_MEMLOCK`, bytes.
    pub locked_memory_bytes: Limit,
    /// `RLIMIT_NOFILE`.
    pub open_files: Limit,
    /// Whether the multi-generational LRU evicts pages.
    pub multi_generational_lru: Option<bool>,
    /// Mode that `auto` chooses.
    pub auto: Auto,
    /// Advice.
    pub advice: Vec<String>,
}

/// Whether something works.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Whether it works.
    pub status: Status,
    /// Reason why it does not work or is not known.
    pub reason: Option<String>,
}

/// Whether something works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// It was tried and works.
    Works,
    /// It does not.
    Fails,
    /// It could not be tried.
    Unknown,
}

/// A mounted file system.
#[derive(Clone, Debug, Serialize)]
pub struct Mount {
    /// Type, such as `ext4`.
    pub file_system: String,
    /// Mount point.
    pub mounted_on: String,
    /// Mounted device.
    pub source: String,
    /// Options.
    pub options: String,
}

/// A block device; fields are `None` where the kernel does not report them.
#[derive(Clone, Debug, Serialize)]
pub struct Device {
    /// Name, such as `nvme0n1p2`.
    pub name: String,
    /// Devices that it is made of.
    pub made_of: Vec<String>,
    /// I/O scheduler.
    pub scheduler: Option<String>,
    /// Readahead of buffered reads, KiB.
    pub read_ahead_kb: Option<u64>,
    /// Longest request, KiB.
    pub max_sectors_kb: Option<u64>,
    /// Whether it reports itself as rotational.
    pub rotational: Option<bool>,
    /// Logical block length, bytes.
    pub logical_block_bytes: Option<u64>,
    /// Physical block length, bytes.
    pub physical_block_bytes: Option<u64>,
    /// `write back` or `write through`.
    pub write_cache: Option<String>,
}

/// Alignment of direct requests, bytes.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Alignment {
    /// Addresses.
    pub memory_bytes: usize,
    /// Offsets and lengths.
    pub offset_bytes: u64,
}

/// A limit of the process; `None` is unlimited.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Limit {
    /// Soft limit.
    pub soft: Option<u64>,
    /// Hard limit.
    pub hard: Option<u64>,
}

/// Mode that `auto` chooses.
#[derive(Clone, Debug, Serialize)]
pub struct Auto {
    /// Mode for `--read-io auto`.
    pub read: Chosen,
    /// Mode for `--write-io auto`.
    pub write: Chosen,
    /// Backend for `--backend auto`.
    pub backend: Chosen,
}

/// A choice.
#[derive(Clone, Debug, Serialize)]
pub struct Chosen {
    /// Name of the mode or backend.
    pub mode: String,
    /// Reason for the choice.
    pub reason: String,
}

impl Findings {
    /// The findings of a probe, without advice.
    pub fn of(probe: Probe) -> Findings {
        Findings {
            directory: probe.directory.display().to_string(),
            writable: probe.writable.into(),
            kernel: probe.kernel,
            mount: probe.mount.map(Mount::from),
            device: probe.device.map(Device::from),
            direct_io: probe.direct.into(),
            direct_io_alignment: probe.alignment.map(|offset_bytes| Alignment {
                memory_bytes: compactor_io::DEFAULT_ALIGNMENT,
                offset_bytes,
            }),
            io_uring: probe.io_uring.into(),
            dontcache: probe.dontcache.into(),
            cachestat: probe.cachestat.into(),
            page_counts: probe.page_counts.into(),
            locked_memory_bytes: probe.locked_memory_bytes.into(),
            open_files: probe.open_files.into(),
            multi_generational_lru: probe.mglru,
            auto: Auto {
                read: probe.read.into(),
                write: probe.write.into(),
                backend: probe.backend.into(),
            },
            advice: Vec::new(),
        }
    }
}

impl Finding {
    /// Whether it works for certain.
    pub fn works(&self) -> bool {
        self.status == Status::Works
    }
}

impl From<Support> for Finding {
    fn from(support: Support) -> Finding {
        match support {
            Support::Works => Finding {
                status: Status::Works,
                reason: None,
            },
            Support::Fails(reason) => Finding {
                status: Status::Fails,
                reason: Some(reason),
            },
            Support::Unknown(reason) => Finding {
                status: Status::Unknown,
                reason: Some(reason),
            },
        }
    }
}

impl From<MountPoint> for Mount {
    fn from(mount: MountPoint) -> Mount {
        Mount {
            file_system: mount.file_system,
            mounted_on: mount.mounted_on,
            source: mount.source,
            options: mount.options,
        }
    }
}

impl From<BlockDevice> for Device {
    fn from(device: BlockDevice) -> Device {
        Device {
            name: device.name,
            made_of: device.made_of,
            scheduler: device.scheduler,
            read_ahead_kb: device.read_ahead_kb,
            max_sectors_kb: device.max_sectors_kb,
            rotational: device.rotational,
            logical_block_bytes: device.logical_block_bytes,
            physical_block_bytes: device.physical_block_bytes,
            write_cache: device.write_cache,
        }
    }
}

impl From<ProcessLimit> for Limit {
    fn from(limit: ProcessLimit) -> Limit {
        Limit {
            soft: limit.soft,
            hard: limit.hard,
        }
    }
}

impl<M: ToString> From<Choice<M>> for Chosen {
    fn from(choice: Choice<M>) -> Chosen {
        Chosen {
            mode: choice.chosen.to_string(),
            reason: choice.reason,
        }
    }
}
