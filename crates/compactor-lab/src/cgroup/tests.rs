use super::*;

const V1_MOUNTS: &str = "24 1 0:20 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n\
    25 24 0:21 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
    26 24 0:22 / /sys/fs/cgroup/memory rw,nosuid shared:9 - cgroup cgroup rw,memory\n\
    27 24 0:23 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

#[test]
fn the_group_of_a_process_is_found_in_either_hierarchy() {
    let place = find("4:memory:/a/b\n3:cpu:/\n0::/\n", V1_MOUNTS).unwrap();
    assert_eq!(place.hierarchy, Hierarchy::V1);
    assert_eq!(place.directory, Path::new("/sys/fs/cgroup/memory/a/b"));

    let v2 = "30 1 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";
    let place = find("0::/user.slice/x.scope\n", v2).unwrap();
    assert_eq!(place.hierarchy, Hierarchy::V2);
    assert_eq!(
        place.directory,
        Path::new("/sys/fs/cgroup/user.slice/x.scope")
    );

    // A container sees the part of the hierarchy that is its own.
    let docker = "30 1 0:26 /docker/12 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n";
    let place = find("4:memory:/docker/12/inner\n", docker).unwrap();
    assert_eq!(place.directory, Path::new("/sys/fs/cgroup/memory/inner"));
    assert!(find("4:memory:/elsewhere\n", docker).is_none());
    assert!(find("0::/\n", "").is_none());
}

#[test]
fn counters_have_other_names_in_each_hierarchy() {
    let v1 = "cache 8192\nrss 4096\ndirty 100\nwriteback 0\nworkingset_refault_file 7\n";
    let found = parse_stat(v1, Hierarchy::V1);
    assert_eq!(
        (found.file_bytes, found.anon_bytes),
        (Some(8192), Some(4096))
    );
    assert_eq!((found.dirty_bytes, found.refaults), (Some(100), Some(7)));
    let v2 = "anon 1\nfile 2\nfile_dirty 3\nfile_writeback 4\nworkingset_refault 5\n";
    let found = parse_stat(v2, Hierarchy::V2);
    assert_eq!((found.anon_bytes, found.file_bytes), (Some(1), Some(2)));
    assert_eq!(
        (found.dirty_bytes, found.writeback_bytes),
        (Some(3), Some(4))
    );
    assert_eq!(found.refaults, Some(5));
    assert_eq!(parse_stat("", Hierarchy::V1).file_bytes, None);
}
