//! A memory cgroup for the time of a run: the foreground load and the compaction share its limit, as a node's page
//! cache and its compactions share a machine.
//!
//! The whole process moves into a new group below its own (v2: a sibling, where its own may not have
//! children with processes), and back at the end. Version 1 and 2 both charge page cache to the group
//! that first touched it. The group is removed when this is dropped; one that a killed run left is
//! removed by the next. A memory controller that had to be enabled for children (v2) stays enabled:
//! others may have begun to use it.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use procfs::process::MountInfos;
use procfs::{FromRead, ProcessCGroups};

use crate::outcome::CgroupMemory;

const PREFIX: &str = "compactor-lab-";
/// Attempts to remove a group from which the kernel has not yet moved everything.
const REMOVE_TRIES: u32 = 50;

/// Version of Linux's cgroup hierarchies, by the names of its files and of lines of `memory.stat`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Hierarchy {
    pub(crate) name: &'static str,
    limit_file: &'static str,
    usage_file: &'static str,
    /// Does not swap if it is 0.
    swap_file: &'static str,
    /// Page cache, memory of processes, dirty page cache, and that which is being written.
    stat: [&'static str; 4],
    /// Before names of page cache, children included.
    stat_prefix: &'static str,
}

pub(crate) static V1: Hierarchy = Hierarchy {
    name: "v1",
    limit_file: "memory.limit_in_bytes",
    usage_file: "memory.usage_in_bytes",
    swap_file: "memory.swappiness",
    stat: ["cache", "rss", "dirty", "writeback"],
    stat_prefix: "total_",
};

pub(crate) static V2: Hierarchy = Hierarchy {
    name: "v2",
    limit_file: "memory.max",
    usage_file: "memory.current",
    swap_file: "memory.swap.max",
    stat: ["file", "anon", "file_dirty", "file_writeback"],
    stat_prefix: "",
};

/// The memory cgroup that a process is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CgroupPath {
    pub(crate) hierarchy: &'static Hierarchy,
    /// Its directory.
    pub(crate) directory: PathBuf,
    /// Mount point of the hierarchy: nothing above can be reached.
    top: PathBuf,
}

impl CgroupPath {
    /// The cgroup of the process whose directory in `/proc` this is, or why it is unknown.
    fn of(process: &Path) -> Result<CgroupPath, String> {
        let (groups, mounts) = (process.join("cgroup"), process.join("mountinfo"));
        let failed = |path: &Path, e| format!("read {}: {e}", path.display());
        let found = find(
            &ProcessCGroups::from_file(&groups).map_err(|e| failed(&groups, e))?,
            &MountInfos::from_file(&mounts).map_err(|e| failed(&mounts, e))?,
        );
        found.ok_or_else(|| {
            "no memory cgroup hierarchy is mounted where this process could see it".to_owned()
        })
    }

    /// Bytes that may still be charged to the group and to those above it; `None` if no limit is known. Page cache of
    /// files on disks makes room.
    fn room(&self) -> Option<u64> {
        let bytes = |group: &Path, file| {
            let text = fs::read_to_string(group.join(file)).ok()?;
            text.trim().parse::<u64>().ok()
        };
        let of_files = |group: &Path| {
            let stat = fs::read_to_string(group.join("memory.stat")).unwrap_or_default();
            let prefix = self.hierarchy.stat_prefix;
            let of = |name| stat_value(&stat, &format!("{prefix}{name}")).unwrap_or(0);
            of("active_file") + of("inactive_file")
        };
        let groups = self.directory.ancestors();
        let groups = groups.take_while(|group| group.starts_with(&self.top));
        let rooms = groups.filter_map(|group| {
            let limit = bytes(group, self.hierarchy.limit_file)?;
            let usage = bytes(group, self.hierarchy.usage_file)?;
            Some(limit.saturating_sub(usage.saturating_sub(of_files(group))))
        });
        rooms.min()
    }
}

/// Bytes that may still be charged to this process's group and to those above it, files in tmpfs included; `None` if no
/// limit is known.
pub(crate) fn room() -> Option<u64> {
    CgroupPath::of(Path::new("/proc/self")).ok()?.room()
}

/// `v1` or `v2` if a group with this limit can be had, otherwise why not. That is known only when it is
/// tried.
pub(crate) fn available(limit_bytes: Option<u64>) -> String {
    match limit_bytes.map(MemoryCgroup::enter) {
        None => "not requested".to_owned(),
        Some(Ok(group)) => group.hierarchy.name.to_owned(),
        Some(Err(reason)) => reason,
    }
}

/// A cgroup made for a run, with this process in it.
#[derive(Debug)]
pub(crate) struct MemoryCgroup {
    hierarchy: &'static Hierarchy,
    directory: PathBuf,
    /// Cgroup that the process came from.
    origin: PathBuf,
    /// Directory of the process in `/proc`.
    process: PathBuf,
}

impl MemoryCgroup {
    /// Creates a group with this limit and moves this process into it; the error is the reason why it cannot.
    pub(crate) fn enter(limit_bytes: u64) -> Result<MemoryCgroup, String> {
        MemoryCgroup::enter_as(Path::new("/proc/self"), limit_bytes)
    }

    fn enter_as(process: &Path, limit_bytes: u64) -> Result<MemoryCgroup, String> {
        let place = CgroupPath::of(process)?;
        let parent = parent_of_new(&place)?;
        remove_left_over(&parent);
        let directory = parent.join(format!("{PREFIX}{}", std::process::id()));
        fs::create_dir(&directory).map_err(|e| {
            format!(
                "make the cgroup {}: {e}; run as root, or in a delegated cgroup (systemd-run --user \
                 --scope -p Delegate=yes)",
                directory.display()
            )
        })?;
        // From here on dropping it removes the directory.
        let group = MemoryCgroup {
            hierarchy: place.hierarchy,
            directory,
            origin: place.directory,
            process: process.to_owned(),
        };
        group.write(place.hierarchy.limit_file, &limit_bytes.to_string())?;
        // Swapping would make room that the limit denies. Kernels without swap have no such file.
        let _ = group.write(place.hierarchy.swap_file, "0");
        group.write("cgroup.procs", &std::process::id().to_string())?;
        Ok(group)
    }

    /// Whether this process is still in it.
    pub(crate) fn holds_this_process(&self) -> bool {
        CgroupPath::of(&self.process).is_ok_and(|place| place.directory == self.directory)
    }

    /// Memory charged now; refaults since the group was made.
    pub(crate) fn memory(&self) -> CgroupMemory {
        let stat = fs::read_to_string(self.directory.join("memory.stat")).unwrap_or_default();
        let usage = fs::read_to_string(self.directory.join(self.hierarchy.usage_file));
        CgroupMemory {
            usage_bytes: usage.ok().and_then(|text| text.trim().parse().ok()),
            ..parse_stat(&stat, self.hierarchy)
        }
    }

    fn write(&self, file: &str, text: &str) -> Result<(), String> {
        let path = self.directory.join(file);
        fs::write(&path, text).map_err(|e| format!("write {text} to {}: {e}", path.display()))
    }
}

impl Drop for MemoryCgroup {
    /// Moves this process back and removes the group. The next run removes what could not be removed now.
    fn drop(&mut self) {
        let procs = self.origin.join("cgroup.procs");
        let own = std::process::id().to_string();
        if self.holds_this_process() && fs::write(procs, own).is_err() {
            return;
        }
        for _ in 0..REMOVE_TRIES {
            match fs::remove_dir(&self.directory) {
                // Threads that are just ending count for a moment.
                Err(error) if error.kind() == ErrorKind::ResourceBusy => {
                    std::thread::sleep(Duration::from_millis(20));
                }
                _ => return,
            }
        }
    }
}

/// The directory in which a group can be made.
fn parent_of_new(place: &CgroupPath) -> Result<PathBuf, String> {
    let own = &place.directory;
    if *place.hierarchy == V1 {
        return Ok(own.clone());
    }
    let gives_memory = |directory: &Path| {
        fs::read_to_string(directory.join("cgroup.subtree_control"))
            .is_ok_and(|text| text.split_ascii_whitespace().any(|word| word == "memory"))
    };
    // A group with processes has no children with controllers, but for the root.
    let enabled = gives_memory(own)
        || fs::write(own.join("cgroup.subtree_control"), "+memory").is_ok() && gives_memory(own);
    if enabled {
        return Ok(own.clone());
    }
    match own.parent() {
        Some(parent) if own != &place.top && gives_memory(parent) => Ok(parent.to_owned()),
        _ => Err(format!(
            "the cgroup {} may have no child with a memory limit, nor may it have a sibling; run as \
             root outside a container, or in a delegated cgroup (systemd-run --user --scope -p \
             Delegate=yes)",
            own.display()
        )),
    }
}

/// Removes the groups of runs that are dead. One with processes cannot be removed.
fn remove_left_over(parent: &Path) {
    for entry in compactor_io::read_dir(parent)
        .into_iter()
        .flatten()
        .flatten()
    {
        let name = entry.file_name();
        let process = name.to_string_lossy();
        let process = process.strip_prefix(PREFIX).map(str::parse::<u32>);
        if let Some(Ok(process)) = process
            && !Path::new(&format!("/proc/{process}")).exists()
        {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// Finds the memory cgroup among those of a process and the mounts that it sees.
fn find(groups: &ProcessCGroups, mounts: &MountInfos) -> Option<CgroupPath> {
    let path_of = |is_it: &dyn Fn(&[String]) -> bool| {
        let found = groups.0.iter().find(|group| is_it(&group.controllers))?;
        Some(&found.pathname)
    };
    let is_memory = |controllers: &[String]| controllers.iter().any(|name| name == "memory");
    let (hierarchy, path) = match path_of(&is_memory) {
        Some(path) => (&V1, path),
        None => (&V2, path_of(&<[String]>::is_empty)?),
    };
    let mount = mounts.0.iter().find(|mount| match mount.fs_type.as_str() {
        "cgroup" => *hierarchy == V1 && mount.super_options.contains_key("memory"),
        "cgroup2" => *hierarchy == V2,
        _ => false,
    })?;
    // In a container the mount shows a part of the hierarchy.
    let below = path.strip_prefix(mount.root.trim_end_matches('/'))?;
    Some(CgroupPath {
        hierarchy,
        directory: mount.mount_point.join(below.trim_start_matches('/')),
        top: mount.mount_point.clone(),
    })
}

/// Value of a line of `memory.stat`.
fn stat_value(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let (found, value) = line.split_once(' ')?;
        (found == name).then(|| value.trim().parse().ok())?
    })
}

fn parse_stat(text: &str, hierarchy: &Hierarchy) -> CgroupMemory {
    let value = |name| stat_value(text, name);
    let [file_bytes, anon_bytes, dirty_bytes, writeback_bytes] = hierarchy.stat.map(value);
    CgroupMemory {
        usage_bytes: None,
        file_bytes,
        anon_bytes,
        dirty_bytes,
        writeback_bytes,
        // One counter until 5.9.
        refaults: value("workingset_refault_file").or_else(|| value("workingset_refault")),
    }
}

#[cfg(test)]
mod tests;
