//! Directories, contents and mounts used by several tests.

use std::fs;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::Command;

use compactor_io::{
    BackendKind, Io, IoErrorKind, IoOptions, ReadMode, WriteMode, WriterOptions, WrittenFile,
};
use tempfile::TempDir;

/// All backends.
pub const BACKENDS: [BackendKind; 3] = [
    BackendKind::Uring,
    BackendKind::Threads,
    BackendKind::TokioUring,
];

/// A temporary directory on a disk.
pub fn disk_directory() -> TempDir {
    let parent = std::env::var_os("COMPACTOR_TEST_DIRECT_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_TARGET_TMPDIR")), PathBuf::from);
    fs::create_dir_all(&parent).unwrap();
    TempDir::new_in(parent).unwrap()
}

/// Returns an `Io` on this backend, or `None`, with a message, if io_uring is forbidden here.
pub fn io_on(backend: BackendKind) -> Option<Io> {
    match Io::new(IoOptions {
        backend,
        ..IoOptions::default()
    }) {
        Ok(io) => Some(io),
        Err(error) if matches!(backend, BackendKind::Uring | BackendKind::TokioUring) => {
            eprintln!("SKIPPED ({backend}): {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Whether direct I/O is supported in this directory; prints a message if not.
pub fn direct_works(directory: &Path) -> bool {
    let path = directory.join("direct-works");
    fs::write(&path, [0; 4096]).unwrap();
    let io = io_on(BackendKind::Threads).unwrap();
    let result = io.open(&path, ReadMode::Direct);
    fs::remove_file(&path).unwrap();
    match result {
        Ok(_) => true,
        Err(error) => {
            assert_eq!(error.kind(), IoErrorKind::Unsupported, "{error}");
            eprintln!(
                "SKIPPED (no direct I/O in {}): {error}",
                directory.display()
            );
            false
        }
    }
}

/// Whether this error means that a mode is not supported here, which is then printed.
pub fn is_unsupported(error: &compactor_io::IoError) -> bool {
    let unsupported = error.kind() == IoErrorKind::Unsupported;
    if unsupported {
        eprintln!("SKIPPED: {error}");
    }
    unsupported
}

/// Bytes in which each group of 8 is different, so that any misplacement is detected.
pub fn content(len: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(len + 8);
    let mut word = 0x9e37_79b9_7f4a_7c15u64;
    while bytes.len() < len {
        word ^= word << 13;
        word ^= word >> 7;
        word ^= word << 17;
        bytes.extend_from_slice(&word.to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

/// Compares without printing the contents.
#[track_caller]
pub fn assert_same(found: &[u8], expected: &[u8], what: &str) {
    if found != expected {
        let place = found.iter().zip(expected).position(|(a, b)| a != b);
        panic!(
            "{what}: lengths {} and {} (expected), first difference at {place:?}",
            found.len(),
            expected.len()
        );
    }
}

/// Writes a file in portions that are not aligned to any boundary.
pub fn write_file(
    io: &Io,
    path: &Path,
    mode: WriteMode,
    options: WriterOptions,
    bytes: &[u8],
) -> Result<WrittenFile, compactor_io::IoError> {
    let mut writer = io.create(path, mode, options)?;
    for portion in bytes.chunks(100_003) {
        writer.write_all(portion)?;
    }
    assert_eq!(writer.position(), bytes.len() as u64);
    writer.finish()
}

/// Flags of the open descriptor, from `/proc/self/fdinfo`.
pub fn descriptor_flags(descriptor: i32) -> u32 {
    let info = fs::read_to_string(format!("/proc/self/fdinfo/{descriptor}")).unwrap();
    let flags = info
        .lines()
        .find_map(|line| line.strip_prefix("flags:"))
        .unwrap();
    u32::from_str_radix(flags.trim(), 8).unwrap()
}

/// All open descriptors of this process for a file.
pub fn descriptors_of(path: &Path) -> Vec<i32> {
    let directory = fs::read_dir("/proc/self/fd").unwrap();
    directory
        .filter_map(|entry| {
            let entry = entry.unwrap();
            let number = entry.file_name().to_str()?.parse().ok()?;
            (fs::read_link(entry.path()).ok()? == path).then_some(number)
        })
        .collect()
}

/// Whether a file is open with `O_DIRECT`.
pub fn has_o_direct(file: &impl AsRawFd) -> bool {
    is_direct(descriptor_flags(file.as_raw_fd()))
}

/// Whether flags contain `O_DIRECT`.
pub fn is_direct(flags: u32) -> bool {
    flags & rustix::fs::OFlags::DIRECT.bits() != 0
}

/// A file system mounted for one test.
pub struct Mount {
    directory: TempDir,
}

impl Mount {
    /// A tmpfs of this size, or `None`, with a message, without permission to mount.
    pub fn tmpfs(bytes: u64) -> Option<Mount> {
        let directory = disk_directory();
        let size = format!("size={bytes}");
        mount(&["-t", "tmpfs", "-o", &size, "none"], directory)
    }

    /// An ext4 file system of this size in an image file, or `None`, with a message.
    pub fn ext4(bytes: u64, image_directory: &Path) -> Option<Mount> {
        let image = image_directory.join("ext4.img");
        fs::File::create(&image).unwrap().set_len(bytes).unwrap();
        let made = Command::new("mkfs.ext4")
            .args(["-q", "-F"])
            .arg(&image)
            .output();
        if !made.is_ok_and(|output| output.status.success()) {
            eprintln!("SKIPPED: mkfs.ext4 does not work here");
            return None;
        }
        mount(&["-o", "loop", image.to_str().unwrap()], disk_directory())
    }

    /// Mount point.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }
}

fn mount(arguments: &[&str], directory: TempDir) -> Option<Mount> {
    let mounted = Command::new("mount")
        .args(arguments)
        .arg(directory.path())
        .output();
    if mounted.is_ok_and(|output| output.status.success()) {
        return Some(Mount { directory });
    }
    eprintln!("SKIPPED: no right to mount a file system ({arguments:?})");
    None
}

impl Drop for Mount {
    fn drop(&mut self) {
        // Lazily: a descriptor may not be closed yet.
        let _ = Command::new("umount")
            .arg("-l")
            .arg(self.directory.path())
            .status();
    }
}
