use super::*;

const V1_MOUNTS: &str = "24 1 0:20 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n\
    25 24 0:21 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
    26 24 0:22 / /sys/fs/cgroup/memory rw,nosuid shared:9 - cgroup cgroup rw,memory\n\
    27 24 0:23 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

fn found(groups: &str, mounts: &str) -> Option<CgroupPath> {
    let groups = ProcessCGroups::from_read(groups.as_bytes()).unwrap();
    find(&groups, &MountInfos::from_read(mounts.as_bytes()).unwrap())
}

#[test]
fn the_cgroup_of_a_process_is_found_in_either_version() {
    let place = found("4:memory:/a/b\n3:cpu:/\n0::/\n", V1_MOUNTS).unwrap();
    assert_eq!(place.hierarchy, &V1);
    assert_eq!(place.directory, Path::new("/sys/fs/cgroup/memory/a/b"));

    let v2 = "30 1 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";
    let place = found("0::/user.slice/x.scope\n", v2).unwrap();
    assert_eq!(place.hierarchy, &V2);
    assert_eq!(
        place.directory,
        Path::new("/sys/fs/cgroup/user.slice/x.scope")
    );

    // A container sees only its own part of the hierarchy.
    let docker = "30 1 0:26 /docker/12 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n";
    let place = found("4:memory:/docker/12/inner\n", docker).unwrap();
    assert_eq!(place.directory, Path::new("/sys/fs/cgroup/memory/inner"));
    assert!(found("4:memory:/elsewhere\n", docker).is_none());
    assert!(found("0::/\n", "").is_none());
}

#[test]
fn counters_have_different_names_in_each_version() {
    let v1 = "cache 8192\nrss 4096\ndirty 100\nwriteback 0\nworkingset_refault_file 7\n";
    let found = parse_stat(v1, &V1);
    assert_eq!(
        (found.file_bytes, found.anon_bytes),
        (Some(8192), Some(4096))
    );
    assert_eq!((found.dirty_bytes, found.refaults), (Some(100), Some(7)));
    let v2 = "anon 1\nfile 2\nfile_dirty 3\nfile_writeback 4\nworkingset_refault 5\n";
    let found = parse_stat(v2, &V2);
    assert_eq!((found.anon_bytes, found.file_bytes), (Some(1), Some(2)));
    assert_eq!(
        (found.dirty_bytes, found.writeback_bytes),
        (Some(3), Some(4))
    );
    assert_eq!(found.refaults, Some(5));
    assert_eq!(parse_stat("", &V1).file_bytes, None);
}

#[test]
fn the_least_room_of_all_ancestor_cgroups_counts() {
    let top = tempfile::tempdir().unwrap();
    let own = top.path().join("a/b");
    fs::create_dir_all(&own).unwrap();
    let group = CgroupPath {
        hierarchy: &V2,
        directory: own.clone(),
        top: top.path().to_owned(),
    };
    assert_eq!(group.room(), None);
    let set = |group: &Path, limit: &str, usage: &str| {
        fs::write(group.join("memory.max"), limit).unwrap();
        fs::write(group.join("memory.current"), usage).unwrap();
    };
    set(&own, "max\n", "5\n");
    assert_eq!(group.room(), None);
    set(top.path(), "100\n", "40\n");
    assert_eq!(group.room(), Some(60));
    set(&own, "30\n", "5\n");
    assert_eq!(group.room(), Some(25));
    fs::write(
        own.join("memory.stat"),
        "active_file 1\ninactive_file 2\nshmem 1\n",
    )
    .unwrap();
    assert_eq!(group.room(), Some(28));
    set(&top.path().join("a"), "30\n", "31\n");
    assert_eq!(group.room(), Some(0));
}

/// A fake cgroup hierarchy of ordinary files, with the `/proc` files of a process in it.
struct Fake {
    root: tempfile::TempDir,
}

impl Fake {
    /// Puts the process into the cgroup `/slice/own`.
    fn new(hierarchy: &'static Hierarchy) -> Fake {
        let fake = Fake {
            root: tempfile::TempDir::new().unwrap(),
        };
        fs::create_dir_all(fake.path("fs/slice/own")).unwrap();
        fs::create_dir(fake.process()).unwrap();
        let mount_point = fake.path("fs");
        let mount_point = mount_point.display();
        let (kind, options) = match hierarchy.name {
            "v1" => ("cgroup", "rw,memory"),
            _ => ("cgroup2", "rw"),
        };
        let mounts = format!("30 1 0:26 / {mount_point} rw - {kind} {kind} {options}\n");
        fs::write(fake.process().join("mountinfo"), mounts).unwrap();
        fake.is_in(hierarchy, "/slice/own");
        fake
    }

    fn path(&self, below: &str) -> PathBuf {
        self.root.path().join(below)
    }

    fn process(&self) -> PathBuf {
        self.path("self")
    }

    fn is_in(&self, hierarchy: &'static Hierarchy, group: &str) {
        let line = match hierarchy.name {
            "v1" => format!("4:memory:{group}\n0::/\n"),
            _ => format!("0::{group}\n"),
        };
        fs::write(self.process().join("cgroup"), line).unwrap();
    }

    /// Path of the cgroup that is created below this one.
    fn created_in(&self, group: &str) -> PathBuf {
        self.path(group)
            .join(format!("{PREFIX}{}", std::process::id()))
    }

    fn text(&self, path: &Path) -> String {
        fs::read_to_string(path).unwrap()
    }
}

/// Removes the files of a cgroup, which the kernel would remove with the directory.
fn remove_files(directory: &Path) {
    for entry in fs::read_dir(directory).unwrap() {
        fs::remove_file(entry.unwrap().path()).unwrap();
    }
}

#[test]
fn a_cgroup_is_entered_read_and_left_in_either_version() {
    let pid = std::process::id().to_string();
    for hierarchy in [&V1, &V2] {
        let fake = Fake::new(hierarchy);
        fs::write(
            fake.path("fs/slice/own/cgroup.subtree_control"),
            "cpu memory\n",
        )
        .unwrap();
        let group = MemoryCgroup::enter_as(&fake.process(), 1 << 29).unwrap();
        assert_eq!(group.hierarchy, hierarchy);
        let made = fake.created_in("fs/slice/own");
        let (limit, swap, usage, stat) = match hierarchy.name {
            "v1" => (
                "memory.limit_in_bytes",
                "memory.swappiness",
                "memory.usage_in_bytes",
                "cache 7\nrss 5\nworkingset_refault_file 3\n",
            ),
            _ => (
                "memory.max",
                "memory.swap.max",
                "memory.current",
                "anon 5\nfile 7\nworkingset_refault_file 3\n",
            ),
        };
        assert_eq!(fake.text(&made.join(limit)), "536870912");
        assert_eq!(fake.text(&made.join(swap)), "0");
        assert_eq!(fake.text(&made.join("cgroup.procs")), pid);

        fs::write(made.join(usage), "4096\n").unwrap();
        fs::write(made.join("memory.stat"), stat).unwrap();
        let memory = group.memory();
        assert_eq!(memory.usage_bytes, Some(4096));
        assert_eq!((memory.file_bytes, memory.anon_bytes), (Some(7), Some(5)));
        assert_eq!(memory.refaults, Some(3));

        // The kernel moves the process; moving it elsewhere removes the limit.
        assert!(!group.holds_this_process());
        let name = made.file_name().unwrap().to_str().unwrap();
        fake.is_in(hierarchy, &format!("/slice/own/{name}"));
        assert!(group.holds_this_process());
        remove_files(&made);
        drop(group);
        assert!(!made.exists());
        let back = fake.path("fs/slice/own/cgroup.procs");
        assert_eq!(fake.text(&back), pid);
    }
}

/// In version 2 a cgroup with processes cannot have children with controllers; then a sibling is created.
#[test]
fn a_cgroup_that_may_have_no_children_gets_a_sibling() {
    let fake = Fake::new(&V2);
    fs::write(fake.path("fs/slice/cgroup.subtree_control"), "memory\n").unwrap();
    let dead = fake.path("fs/slice").join(format!("{PREFIX}{}", u32::MAX));
    let of_a_user = fake.path("fs/slice/compactor-lab-mine");
    for directory in [&dead, &of_a_user] {
        fs::create_dir(directory).unwrap();
    }
    let group = MemoryCgroup::enter_as(&fake.process(), 1 << 29).unwrap();
    let made = fake.created_in("fs/slice");
    assert_eq!(fake.text(&made.join("memory.max")), "536870912");
    assert!(!dead.exists() && of_a_user.exists());
    remove_files(&made);
    drop(group);
    assert!(!made.exists());
}

#[test]
fn a_failure_to_create_a_cgroup_has_advice() {
    let fake = Fake::new(&V2);
    let error = MemoryCgroup::enter_as(&fake.process(), 1 << 29).unwrap_err();
    assert!(error.contains("systemd-run --user"), "{error}");
    let error = MemoryCgroup::enter_as(&fake.path("nobody"), 1).unwrap_err();
    assert!(error.contains("nobody/cgroup"), "{error}");
    // Creation fails, as without permission: a file is in its place.
    let fake = Fake::new(&V1);
    fs::write(fake.created_in("fs/slice/own"), "").unwrap();
    let error = MemoryCgroup::enter_as(&fake.process(), 1).unwrap_err();
    assert!(error.contains("run as root"), "{error}");
}
