//! The block device under a file system, from `/sys/dev/block`.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::mount::MountPoint;

/// A block device and the settings of its queue. `None` if the kernel does not report a value.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlockDevice {
    /// Name, such as `nvme0n1p2`.
    pub name: String,
    /// Underlying devices (RAID, LVM, encryption).
    pub made_of: Vec<String>,
    /// The I/O scheduler in use, such as `none`.
    pub scheduler: Option<String>,
    /// The kernel's readahead for buffered reads, KiB.
    pub read_ahead_kb: Option<u64>,
    /// Maximum request length, KiB. It limits buffered readahead; direct requests are split.
    pub max_sectors_kb: Option<u64>,
    /// Whether it reports to be a spinning disk. Virtual disks often do, whatever their hardware.
    pub rotational: Option<bool>,
    /// Logical block length, bytes: the minimum unit of direct I/O.
    pub logical_block_bytes: Option<u64>,
    /// Physical block length, bytes.
    pub physical_block_bytes: Option<u64>,
    /// `write back` if it has a volatile cache, which a sync must flush; otherwise `write through`.
    pub write_cache: Option<String>,
}

pub(crate) fn of_mount(mount: &MountPoint) -> Option<BlockDevice> {
    let (major, minor) = device_number(mount)?;
    of_directory(&fs::canonicalize(format!("/sys/dev/block/{major}:{minor}")).ok()?)
}

/// File systems that may span devices (btrfs) have an anonymous number: the source names one device.
fn device_number(mount: &MountPoint) -> Option<(u32, u32)> {
    if mount.device_number.0 != 0 {
        return Some(mount.device_number);
    }
    if !mount.source.starts_with("/dev/") {
        return None;
    }
    let number = fs::metadata(&mount.source).ok()?.rdev();
    Some((rustix::fs::major(number), rustix::fs::minor(number)))
}

fn of_directory(directory: &Path) -> Option<BlockDevice> {
    let name = directory.file_name()?.to_string_lossy().into_owned();
    // The queue of a partition is that of its disk.
    let queue = [directory.join("queue"), directory.parent()?.join("queue")]
        .into_iter()
        .find(|path| path.is_dir());
    let text = |file: &str| read(&queue.as_ref()?.join(file));
    let number = |file: &str| text(file)?.parse().ok();
    Some(BlockDevice {
        name,
        made_of: names_in(&directory.join("slaves")),
        scheduler: text("scheduler").map(|line| chosen_scheduler(&line)),
        read_ahead_kb: number("read_ahead_kb"),
        max_sectors_kb: number("max_sectors_kb"),
        rotational: text("rotational").map(|flag| flag == "1"),
        logical_block_bytes: number("logical_block_size"),
        physical_block_bytes: number("physical_block_size"),
        write_cache: text("write_cache"),
    })
}

fn read(path: &PathBuf) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}

fn names_in(directory: &Path) -> Vec<String> {
    let Ok(entries) = crate::read_dir(directory) else {
        return Vec::new();
    };
    let mut names: Vec<_> = entries
        .filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()))
        .collect();
    names.sort();
    names
}

/// Returns the scheduler in brackets, as in `[none] mq-deadline kyber`.
fn chosen_scheduler(line: &str) -> String {
    match line
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'))
    {
        Some((chosen, _)) => chosen.to_owned(),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scheduler_is_the_one_in_brackets() {
        assert_eq!(chosen_scheduler("none [mq-deadline] kyber"), "mq-deadline");
        assert_eq!(chosen_scheduler("none"), "none");
    }
}
