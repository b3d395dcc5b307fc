//! Limits of threads, descriptors and memory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use compactor_testkit::{Need, campaign, skip};

use crate::faults::each;
use crate::faults::setting::{Setting, Tried};

/// One command of each kind.
fn commands(setting: &Setting) -> Vec<&Tried> {
    let names = [
        "merge", "compact", "split", "upgrade", "scrub", "generate", "verify", "dump",
    ];
    names.map(|name| setting.command(name, "")).into()
}

/// Tries all commands, each with all values of a limit, or with some in a short campaign.
#[track_caller]
fn all(limits: &[u64], wrap: impl Fn(u64, &[String]) -> Vec<String> + Sync) {
    let setting = Setting::shared();
    let commands = commands(&setting);
    let limits = campaign::some_of(limits.iter().copied());
    each((commands.len() * limits.len()) as u64, |number| {
        let number = number as usize;
        let (tried, limit) = (
            commands[number / limits.len()],
            limits[number % limits.len()],
        );
        setting.try_under(tried, |line| wrap(limit, line))
    });
}

fn under(wrapper: &[&str], line: &[String]) -> Vec<String> {
    let wrapper = wrapper.iter().map(|&word| word.to_owned());
    wrapper.chain(line.iter().cloned()).collect()
}

fn ulimit(option: &str, limit: u64, line: &[String]) -> Vec<String> {
    let script = format!("ulimit {option} {limit}; exec \"$@\"");
    under(&["sh", "-c", &script, "sh"], line)
}

#[test]
fn descriptors() {
    let limits: Vec<u64> = (4..40).step_by(3).collect();
    all(&limits, |limit, line| ulimit("-n", limit, line));
}

#[test]
fn address_space() {
    let limits: Vec<u64> = [20, 24, 28, 32, 40, 48, 64, 96, 128, 192, 256, 384].into();
    all(&limits, |mib, line| ulimit("-v", mib << 10, line));
}

/// Threads of a user who has no others; root is not limited.
#[test]
fn threads() {
    // Check first that another user may run the command.
    let other_user = ["setpriv", "--reuid=54321", "--clear-groups"];
    let can_run_the_command = Command::new(other_user[0])
        .args(&other_user[1..])
        .args([&crate::faults::setting::compactor(), "--version"])
        .output()
        .is_ok_and(|output| output.status.success());
    if !can_run_the_command {
        skip(Need::Root, "no other user may run the command");
        return;
    }
    let limits: Vec<u64> = (1..14).collect();
    all(&limits, |limit, line| {
        let out = line.iter().find(|word| word.ends_with("/out"));
        if let Some(parent) = out.and_then(|out| Path::new(out).parent()) {
            let open = Command::new("chmod").args(["777"]).arg(parent).status();
            assert!(open.unwrap().success());
        }
        let nproc = format!("--nproc={limit}");
        let mut wrapper = other_user.to_vec();
        wrapper.extend(["prlimit", &nproc]);
        under(&wrapper, line)
    });
}

/// A cgroup, removed on drop.
struct Group(PathBuf);

impl Group {
    /// With one limit; of version 2 if that is in use here, else of version 1.
    fn new(number: usize, file: &str, limit: u64) -> Option<Group> {
        let controller = file.split('.').next().unwrap_or_default();
        let root = Path::new("/sys/fs/cgroup");
        let is_v2 = root.join("cgroup.controllers").exists();
        if is_v2 {
            let _ = fs::write(
                root.join("cgroup.subtree_control"),
                format!("+{controller}"),
            );
        }
        let parent = if is_v2 {
            root.to_owned()
        } else {
            root.join(controller)
        };
        let name = format!(
            "compactor-faults-{}-{controller}-{number}",
            std::process::id()
        );
        let group = Group(parent.join(name));
        fs::create_dir(&group.0).ok()?;
        let file = match file {
            "memory.max" if !is_v2 => "memory.limit_in_bytes",
            file => file,
        };
        fs::write(group.0.join(file), limit.to_string()).ok()?;
        Some(group)
    }

    fn wrap(&self, line: &[String]) -> Vec<String> {
        let script = format!("echo $$ > {}/cgroup.procs; exec \"$@\"", self.0.display());
        under(&["sh", "-c", &script, "sh"], line)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[track_caller]
fn in_groups(file: &str, limits: &[u64]) {
    let groups: Vec<Group> = limits
        .iter()
        .enumerate()
        .filter_map(|(number, &limit)| Group::new(number, file, limit))
        .collect();
    if groups.len() < limits.len() {
        skip(
            Need::Cgroup,
            format!("no control group with {file} can be created"),
        );
        return;
    }
    let numbers: Vec<u64> = (0..groups.len() as u64).collect();
    all(&numbers, |number, line| groups[number as usize].wrap(line));
}

#[test]
fn threads_of_a_control_group() {
    in_groups("pids.max", &[1, 2, 3, 5, 7, 10, 13]);
}

/// The next run removes what is left of a run that the kernel killed for lack of memory.
#[test]
fn memory_of_a_control_group() {
    let mib = [1, 2, 4, 6, 8, 12, 16, 24, 32, 48];
    in_groups("memory.max", &mib.map(|mib| mib << 20));
}
