//! Contents and descriptors used by several tests.

use std::fs;
use std::os::fd::AsRawFd;
use std::path::Path;

use compactor_io::{Io, WriteMode, WriterOptions, WrittenFile};

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
