//! Capture of the machine that an experiment takes place on.

use std::fs;
use std::path::Path;

use compactor::Result;
use compactor_io::{BlockDevice, Probe, Support, probe};
use procfs::{CpuInfo, Current, LoadAverage, Meminfo};

use crate::outcome::{DeviceRecord, Environment};

/// Settings of `/proc/sys/vm` that decide on writeback and reclaim.
const VM_SETTINGS: [&str; 8] = [
    "dirty_background_bytes",
    "dirty_background_ratio",
    "dirty_bytes",
    "dirty_ratio",
    "dirty_expire_centisecs",
    "min_free_kbytes",
    "swappiness",
    "vfs_cache_pressure",
];

/// Captures the environment; `directory` is on the disk in question, `memory_cgroup` what is known of that.
///
/// # Errors
/// If the directory cannot be opened.
pub(crate) fn capture(directory: &Path, memory_cgroup: String) -> Result<Environment> {
    let found = probe(directory)?;
    let cpu = CpuInfo::current().ok();
    let of_cpu = |name: &str| cpu.as_ref()?.get_field(0, name).map(str::to_owned);
    Ok(Environment {
        compactor_version: env!("CARGO_PKG_VERSION").to_owned(),
        commit: option_env!("COMPACTOR_LAB_COMMIT").map(str::to_owned),
        build: format!(
            "{}, {}",
            env!("COMPACTOR_LAB_RUSTC"),
            if cfg!(debug_assertions) {
                "debug"
            } else {
                "release"
            }
        ),
        kernel: kernel(&found),
        architecture: std::env::consts::ARCH.to_owned(),
        cpu: of_cpu("model name"),
        processors: std::thread::available_parallelism()
            .map_or(1, |n| u32::try_from(n.get()).unwrap_or(u32::MAX)),
        memory_bytes: memory_bytes(),
        page_bytes: rustix::param::page_size() as u64,
        virtualisation: virtualisation(of_cpu("flags").as_deref()),
        file_system: found.mount.as_ref().map(|m| m.file_system.clone()),
        mounted_on: found.mount.as_ref().map(|m| m.mounted_on.clone()),
        mount_options: found.mount.as_ref().map(|m| m.options.clone()),
        device: found.device.as_ref().map(device),
        direct_io: support(&found.direct),
        direct_alignment_bytes: found.alignment,
        dontcache: support(&found.dontcache),
        io_uring: support(&found.io_uring),
        cachestat: support(&found.cachestat),
        mglru: found.mglru,
        damon: damon(),
        memory_cgroup,
        vm_settings: VM_SETTINGS
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), line(&format!("/proc/sys/vm/{name}"))?)))
            .collect(),
        load_before: load(),
    })
}

fn kernel(found: &Probe) -> String {
    let version = line("/proc/sys/kernel/version");
    version.map_or_else(
        || found.kernel.clone(),
        |version| format!("{} {version}", found.kernel),
    )
}

fn support(support: &Support) -> String {
    match support {
        Support::Works => "yes".to_owned(),
        Support::Fails(reason) | Support::Unknown(reason) => reason.clone(),
    }
}

fn device(found: &BlockDevice) -> DeviceRecord {
    let model = line(&format!("/sys/class/block/{}/device/model", found.name));
    DeviceRecord {
        is_virtual: is_virtual(&found.name, model.as_deref()),
        name: found.name.clone(),
        model,
        made_of: found.made_of.clone(),
        scheduler: found.scheduler.clone(),
        read_ahead_kb: found.read_ahead_kb,
        max_sectors_kb: found.max_sectors_kb,
        rotational: found.rotational,
        logical_block_bytes: found.logical_block_bytes,
        write_cache: found.write_cache.clone(),
    }
}

/// Disks of hypervisors and clouds by their names: virtio, Xen, loop and network devices; the rest by
/// what they call themselves.
fn is_virtual(name: &str, model: Option<&str>) -> bool {
    const NAMES: [&str; 5] = ["vd", "xvd", "loop", "nbd", "rbd"];
    const MODELS: [&str; 6] = [
        "qemu",
        "virtual",
        "vmware",
        "elastic block",
        "persistentdisk",
        "msft",
    ];
    let model = model.unwrap_or_default().to_lowercase();
    NAMES.iter().any(|prefix| name.starts_with(prefix))
        || MODELS.iter().any(|word| model.contains(word))
}

fn virtualisation(flags: Option<&str>) -> Option<String> {
    if !flags?.split(' ').any(|flag| flag == "hypervisor") {
        return None;
    }
    Some(line("/sys/class/dmi/id/sys_vendor").map_or_else(
        || "a hypervisor".to_owned(),
        |vendor| format!("a hypervisor ({vendor})"),
    ))
}

/// Whether any of DAMON's threads is on.
fn damon() -> Option<bool> {
    let threads = "/sys/kernel/mm/damon/admin/kdamonds";
    let states = compactor_io::read_dir(threads).ok()?.flatten();
    let states = states.filter_map(|entry| fs::read_to_string(entry.path().join("state")).ok());
    Some(states.into_iter().any(|state| state.trim() == "on"))
}

pub(crate) fn memory_bytes() -> Option<u64> {
    Some(Meminfo::current().ok()?.mem_total)
}

fn load() -> Option<[f64; 3]> {
    let load = LoadAverage::current().ok()?;
    Some([load.one, load.five, load.fifteen].map(f64::from))
}

/// Content of a file of one line, if there is any.
fn line(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disks_of_hypervisors_are_known() {
        assert!(is_virtual("vda", None) && is_virtual("xvdb1", None));
        assert!(is_virtual("nvme1n1", Some("Amazon Elastic Block Store")));
        assert!(is_virtual("sda", Some("QEMU HARDDISK")));
        assert!(!is_virtual("nvme0n1", Some("Samsung SSD 990 PRO 2TB")));
        assert!(!is_virtual(
            "nvme0n1",
            Some("Amazon EC2 NVMe Instance Storage")
        ));
        assert!(!is_virtual("sda", None));
    }

    #[test]
    fn the_machine_is_captured() {
        let directory = tempfile::tempdir().unwrap();
        let found = capture(directory.path(), "v2".to_owned()).unwrap();
        assert!(found.memory_bytes.unwrap() > 1 << 20);
        assert!(found.processors > 0 && found.page_bytes >= 4096);
        assert!(!found.kernel.is_empty() && found.build.starts_with("rustc"));
        assert_eq!(found.memory_cgroup, "v2");
    }
}
