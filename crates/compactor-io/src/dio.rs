//! Support of direct I/O for a file, its alignment, and the resulting mode.
//!
//! Determined by `statx` (`STATX_DIOALIGN`), not by whether opening with `O_DIRECT` succeeds: tmpfs accepts
//! it without bypassing anything, and ext4 silently buffers verity, data-journalled and inline files. Both
//! report no alignment.

use std::io::{self, IoSliceMut};
use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::{AtFlags, OFlags, StatxFlags, fcntl_getfl, fcntl_setfl, fstat, statx};
use rustix::io::Errno;

use crate::align::{DEFAULT_ALIGNMENT, DEFAULT_ALIGNMENT_U64};
use crate::error::{IoError, IoErrorKind, IoOperation};
use crate::mode::{Mode, ReadMode, WriteMode};
use crate::sys::RWF_DONTCACHE;

/// Maximum offset alignment considered plausible.
const OFFSET_ALIGNMENT_MAX: u64 = 1 << 20;

/// Results of `statx` for an open file.
#[derive(Debug, Clone)]
pub(crate) struct FileFacts {
    pub(crate) len: u64,
    /// Alignment of offsets and lengths of direct I/O, or the reason why it is not supported.
    pub(crate) direct: Result<u64, String>,
}

pub(crate) fn file_facts(file: impl AsFd) -> io::Result<FileFacts> {
    let wanted = StatxFlags::SIZE | StatxFlags::DIOALIGN;
    let found = match statx(&file, c"", AtFlags::EMPTY_PATH, wanted) {
        Ok(found) => found,
        // For an open file this needs no permission: the error comes from a sandbox, which permits the older
        // call.
        Err(error @ (Errno::NOSYS | Errno::PERM | Errno::ACCESS)) => {
            let found = fstat(&file)?;
            return Ok(FileFacts {
                // No file has a negative length.
                len: u64::try_from(found.st_size).unwrap_or(0),
                direct: Err(format!(
                    "statx, which reports whether direct I/O works, is not allowed or missing here: \
                     {}",
                    io::Error::from(error)
                )),
            });
        }
        Err(error) => return Err(error.into()),
    };
    let reported = StatxFlags::from_bits_retain(found.stx_mask);
    let direct = if !reported.contains(StatxFlags::DIOALIGN) {
        Err("statx reports no direct I/O alignment (STATX_DIOALIGN) for it".to_owned())
    } else {
        accept_alignment(found.stx_dio_mem_align, found.stx_dio_offset_align)
    };
    Ok(FileFacts {
        len: found.stx_size,
        direct,
    })
}

/// Raises the reported alignment to the minimum alignment; zeroes mean "not supported".
fn accept_alignment(memory: u32, offset: u32) -> Result<u64, String> {
    if memory == 0 || offset == 0 {
        return Err("statx reports that it does not support direct I/O".to_owned());
    }
    let memory = memory as usize;
    let offset = u64::from(offset);
    let usable = memory.is_power_of_two()
        && offset.is_power_of_two()
        && memory <= DEFAULT_ALIGNMENT
        && offset <= OFFSET_ALIGNMENT_MAX;
    if !usable {
        return Err(format!(
            "direct I/O on it needs addresses aligned to {memory} and offsets to {offset}, beyond \
             what is supported here ({DEFAULT_ALIGNMENT} and {OFFSET_ALIGNMENT_MAX})"
        ));
    }
    Ok(offset.max(DEFAULT_ALIGNMENT_U64))
}

/// Sets `O_DIRECT` on an open file.
pub(crate) fn set_direct(file: impl AsFd) -> io::Result<()> {
    let flags = fcntl_getfl(&file)?;
    fcntl_setfl(&file, flags | OFlags::DIRECT)?;
    Ok(())
}

/// Whether reads and writes of this file accept `RWF_DONTCACHE`. The file must be open for reading.
pub(crate) fn accepts_dontcache(file: impl AsFd, len: u64) -> io::Result<()> {
    // The kernel checks the flags before it reads, and at the end of the file there is nothing to read: this
    // touches no page.
    let mut byte = [0];
    let buffers = &mut [IoSliceMut::new(&mut byte)];
    rustix::io::preadv2(file, buffers, len, RWF_DONTCACHE)?;
    Ok(())
}

/// A resolved mode, and how it was resolved for a file.
#[derive(Debug)]
pub(crate) struct Resolved<M> {
    pub(crate) mode: M,
    /// Alignment of offsets and lengths in mode `direct`.
    pub(crate) alignment: Option<u64>,
    /// Reason why `auto` did not choose `direct`.
    pub(crate) fallback: Option<String>,
}

/// Resolves the mode in which a file is read, and prepares the file for it.
pub(crate) fn resolve_read(
    file: impl AsFd,
    path: &Path,
    asked: ReadMode,
    facts: &FileFacts,
) -> Result<Resolved<ReadMode>, IoError> {
    use ReadMode::{Auto, Direct, DontCache, DontNeed};
    let modes = [Auto, Direct, DontNeed, DontCache];
    let mode = Mode::Read(asked);
    resolve(file, path, IoOperation::Open, asked, modes, mode, facts)
}

/// Resolves the mode in which a file (open for reading and writing) is written, and prepares the file for it.
pub(crate) fn resolve_write(
    file: impl AsFd,
    path: &Path,
    asked: WriteMode,
    facts: &FileFacts,
) -> Result<Resolved<WriteMode>, IoError> {
    use WriteMode::{Auto, Direct, DontCache, DontNeed};
    let modes = [Auto, Direct, DontNeed, DontCache];
    let mode = Mode::Write(asked);
    resolve(file, path, IoOperation::Create, asked, modes, mode, facts)
}

/// `mode` is `asked` with its direction, for errors.
fn resolve<M: Copy + PartialEq>(
    file: impl AsFd,
    path: &Path,
    operation: IoOperation,
    asked: M,
    [auto, direct, dontneed, dontcache]: [M; 4],
    mode: Mode,
    facts: &FileFacts,
) -> Result<Resolved<M>, IoError> {
    if asked == auto || asked == direct {
        let reason = match &facts.direct {
            Ok(alignment) => match set_direct(&file) {
                Ok(()) => {
                    return Ok(Resolved {
                        mode: direct,
                        alignment: Some(*alignment),
                        fallback: None,
                    });
                }
                Err(error) => format!("it reports direct I/O, but refuses O_DIRECT: {error}"),
            },
            Err(reason) => reason.clone(),
        };
        if asked == direct {
            let kind = IoErrorKind::Unsupported;
            return Err(IoError::found(operation, kind, path, reason)
                .in_mode(mode)
                .remedy(format!(
                    "choose {} auto, dontneed or buffered for it",
                    mode.kind_name()
                )));
        }
        return Ok(Resolved {
            mode: dontneed,
            alignment: None,
            fallback: Some(reason),
        });
    }
    if asked == dontcache {
        accepts_dontcache(&file, facts.len).map_err(|error| {
            IoError::system(operation, path, error).in_mode(mode).remedy(format!(
                "RWF_DONTCACHE needs Linux 6.14 and a file system that supports it, such as ext4 or \
                 xfs; choose {} auto or dontneed",
                mode.kind_name()
            ))
        })?;
    }
    Ok(Resolved {
        mode: asked,
        alignment: None,
        fallback: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alignment_is_at_least_4096_and_accepted_only_if_plausible() {
        let accepted = accept_alignment(512, 512).unwrap();
        assert_eq!(accepted, 4096);
        assert_eq!(accept_alignment(4, 65536).unwrap(), 65536);
        for (memory, offset) in [
            (0, 0),
            (512, 0),
            (0, 512),
            (8192, 512),
            (512, 1 << 21),
            (3, 512),
        ] {
            assert!(
                accept_alignment(memory, offset).is_err(),
                "{memory} {offset}"
            );
        }
    }
}
