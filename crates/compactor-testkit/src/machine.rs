//! Features of the machine that tests need; a missing one is reported as skipped.

use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

use crate::skip::{Need, skip};

/// A temporary directory in `COMPACTOR_TEST_DIRECT_DIR`, otherwise in the target directory: on a disk, since tmpfs has
/// no direct I/O.
///
/// # Panics
/// If it cannot be created.
pub fn disk_directory() -> TempDir {
    let parent = std::env::var_os("COMPACTOR_TEST_DIRECT_DIR")
        .map_or_else(temporary_directory_of_target, PathBuf::from);
    std::fs::create_dir_all(&parent).expect("a directory for tests");
    TempDir::new_in(parent).expect("a temporary directory")
}

/// `target/tmp`; test binaries are at `target/PROFILE/deps`.
fn temporary_directory_of_target() -> PathBuf {
    let program = std::env::current_exe().expect("a path of this program");
    let target = program.ancestors().nth(3).expect("a target directory");
    target.join("tmp")
}

/// Whether strace can inject faults into programs here.
#[track_caller]
pub fn has_strace() -> bool {
    let arguments = ["-f", "--seccomp-bpf", "-qq", "-o", "/dev/null", "true"];
    let has = succeeds(Command::new("strace").args(arguments));
    if !has {
        skip(Need::Strace, "strace is not installed, or may not trace");
    }
    has
}

/// Whether fio is installed.
#[track_caller]
pub fn has_fio() -> bool {
    let has = succeeds(Command::new("fio").arg("--version"));
    if !has {
        skip(Need::Fio, "fio is not installed");
    }
    has
}

/// A file system mounted for one test, unmounted on drop.
#[derive(Debug)]
pub struct Mount {
    /// Mount point.
    pub directory: TempDir,
}

impl Mount {
    /// A tmpfs of this size, or `None` without the right to mount.
    #[track_caller]
    pub fn tmpfs(bytes: u64) -> Option<Mount> {
        let size = format!("size={bytes}");
        Mount::new(&["-t", "tmpfs", "-o", &size, "none"])
    }

    /// An ext4 file system of this size in an image file in `image_directory`, or `None` without `mkfs.ext4` or the
    /// right to mount.
    ///
    /// # Panics
    /// If the image cannot be created.
    #[track_caller]
    pub fn ext4(bytes: u64, image_directory: &std::path::Path) -> Option<Mount> {
        let image = image_directory.join("ext4.img");
        let file = std::fs::File::create(&image).expect("an image");
        file.set_len(bytes).expect("space for an image");
        if !succeeds(Command::new("mkfs.ext4").args(["-q", "-F"]).arg(&image)) {
            skip(Need::Mount, "mkfs.ext4 does not work here");
            return None;
        }
        Mount::new(&["-o", "loop", &image.to_string_lossy()])
    }

    /// An overlay file system over this directory, which has to be empty and on a disk, or `None` without the right to
    /// mount.
    ///
    /// # Panics
    /// If directories cannot be created in it.
    #[track_caller]
    pub fn overlay(below: &std::path::Path) -> Option<Mount> {
        let [lower, upper, work] = ["lower", "upper", "work"].map(|name| below.join(name));
        for directory in [&lower, &upper, &work] {
            std::fs::create_dir(directory).expect("a directory of an overlay");
        }
        let [lower, upper, work] = [lower, upper, work].map(|path| path.display().to_string());
        let options = format!("lowerdir={lower},upperdir={upper},workdir={work}");
        Mount::new(&["-t", "overlay", "-o", &options, "none"])
    }

    /// This directory at a second path, or `None` without the right to mount.
    #[track_caller]
    pub fn bind(directory: &std::path::Path) -> Option<Mount> {
        Mount::new(&["--bind", &directory.to_string_lossy()])
    }

    #[track_caller]
    fn new(arguments: &[&str]) -> Option<Mount> {
        let directory = disk_directory();
        let mut command = Command::new("mount");
        if !succeeds(command.args(arguments).arg(directory.path())) {
            skip(Need::Mount, "no right to mount a file system");
            return None;
        }
        Some(Mount { directory })
    }

    /// Mount point.
    pub fn path(&self) -> &std::path::Path {
        self.directory.path()
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // Lazily: a descriptor may not be closed yet.
        let _ = Command::new("umount").arg("-l").arg(self.path()).status();
    }
}

fn succeeds(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}
