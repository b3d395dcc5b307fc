//! Mount of a file, from `/proc/self/mountinfo`.

use std::fs::{self, File};

use rustix::fs::{AtFlags, StatxFlags, statx};

/// A mounted file system.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MountPoint {
    /// File system type, such as `ext4`.
    pub file_system: String,
    /// Mount point.
    pub mounted_on: String,
    /// Mounted device, such as `/dev/nvme0n1p2`.
    pub source: String,
    /// Options of the mount and of the file system.
    pub options: String,
    /// Major and minor number of the device; major 0 is not a block device.
    pub device_number: (u32, u32),
}

pub(crate) fn of_file(file: &File) -> Option<MountPoint> {
    let found = statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID).ok()?;
    let mount_id = found.stx_mnt_id;
    let text = fs::read_to_string("/proc/self/mountinfo").ok()?;
    text.lines().find_map(|line| parse(line, mount_id))
}

/// Parses a line if it describes this mount. `36 35 98:0 /root /mnt opts shared:1 - ext4 /dev/x opts`: id,
/// parent, device, root, mount point, options, optional fields, `-`, type, source, options of the file
/// system.
fn parse(line: &str, mount_id: u64) -> Option<MountPoint> {
    let (before, after) = line.split_once(" - ")?;
    let mut before = before.split(' ');
    if before.next()?.parse::<u64>().ok()? != mount_id {
        return None;
    }
    let (major, minor) = before.nth(1)?.split_once(':')?;
    let mounted_on = before.nth(1)?;
    let mount_options = before.next()?;
    let mut after = after.split(' ');
    Some(MountPoint {
        file_system: after.next()?.to_owned(),
        mounted_on: unescape(mounted_on),
        source: unescape(after.next()?),
        options: format!("{mount_options},{}", after.next().unwrap_or_default()),
        device_number: (major.parse().ok()?, minor.parse().ok()?),
    })
}

/// Replaces the octal escapes of blanks and backslashes: three digits after a backslash.
fn unescape(text: &str) -> String {
    let mut parts = text.split('\\');
    let mut result = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code = part
            .get(..3)
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match (code, part.get(3..)) {
            (Some(code), Some(rest)) if code.is_ascii() => {
                result.push(char::from(code));
                result.push_str(rest);
            }
            _ => {
                result.push('\\');
                result.push_str(part);
            }
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_mountinfo() {
        let line = "36 35 98:0 /sub /mnt/my\\040disk rw,noatime master:1 - ext4 /dev/root rw,errors=continue";
        let mount = parse(line, 36).unwrap();
        assert_eq!(mount.file_system, "ext4");
        assert_eq!(mount.mounted_on, "/mnt/my disk");
        assert_eq!(mount.source, "/dev/root");
        assert_eq!(mount.options, "rw,noatime,rw,errors=continue");
        assert_eq!(mount.device_number, (98, 0));
        assert_eq!(parse(line, 35), None);
        assert_eq!(parse("36 35", 36), None);
        assert_eq!(unescape("a\\x\\0"), "a\\x\\0");
    }
}
