//! Error of this crate: failed operation, file and position, access mode, the system's message, and a remedy.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::io::Errno;

use crate::align::DEFAULT_ALIGNMENT;
use crate::mode::Mode;

/// Operation that caused an [`IoError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum IoOperation {
    /// Opening a file for reading.
    Open,
    /// Creating a file for writing.
    Create,
    /// Querying a file's length and alignment (`statx`).
    Stat,
    /// Reading an extent.
    Read,
    /// Writing an extent.
    Write,
    /// Reserving blocks (`fallocate`).
    Allocate,
    /// Setting the length (`ftruncate`).
    Truncate,
    /// `fdatasync`.
    SyncData,
    /// Starting or awaiting write-back of a range (`sync_file_range`).
    SyncRange,
    /// Dropping pages from the page cache (`posix_fadvise`).
    Evict,
    /// Syncing a directory.
    SyncDirectory,
    /// Renaming a file.
    Rename,
    /// Exchanging two directories.
    Exchange,
    /// Removing a file.
    Remove,
    /// Observing the page cache (`cachestat`, `mincore`).
    Residency,
    /// Starting an I/O backend.
    StartBackend,
}

impl fmt::Display for IoOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            IoOperation::Open => "open",
            IoOperation::Create => "create",
            IoOperation::Stat => "stat",
            IoOperation::Read => "read",
            IoOperation::Write => "write",
            IoOperation::Allocate => "allocate blocks of",
            IoOperation::Truncate => "truncate",
            IoOperation::SyncData => "fdatasync",
            IoOperation::SyncRange => "write back a range of",
            IoOperation::Evict => "drop cached pages of",
            IoOperation::SyncDirectory => "sync directory",
            IoOperation::Rename => "rename",
            IoOperation::Exchange => "exchange with another in one step",
            IoOperation::Remove => "remove",
            IoOperation::Residency => "observe the page cache of",
            IoOperation::StartBackend => "start I/O backend",
        })
    }
}

/// Kind of an error, as far as a caller would act on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum IoErrorKind {
    /// The file or its directory does not exist.
    NotFound,
    /// The file to create, or the target of a rename, exists.
    AlreadyExists,
    /// The system refused access.
    PermissionDenied,
    /// No space, no quota, or the file would exceed a size limit: remove outputs, free space.
    NoSpace,
    /// The file ends before the bytes asked for.
    UnexpectedEof,
    /// The file is larger than the caller's limit.
    TooLarge,
    /// The mode or backend does not work here; another one would.
    Unsupported,
    /// Any other failure of the system or the device.
    Failed,
}

/// An I/O error with its circumstances. Cheap to clone: a writer's first error is returned again by every
/// later call.
///
/// `Display` is one complete sentence including the system's message, so
/// [`source`](std::error::Error::source) is `None` and printing the chain repeats nothing;
/// [`io_error`](Self::io_error) returns the system's error.
#[derive(Clone)]
pub struct IoError(Arc<Details>);

#[derive(Debug)]
struct Details {
    operation: IoOperation,
    kind: IoErrorKind,
    path: PathBuf,
    extent: Option<(u64, u64)>,
    mode: Option<Mode>,
    source: Option<io::Error>,
    reason: Option<String>,
    remedy: Option<String>,
}

impl IoError {
    /// Creates an error that the system reported.
    pub(crate) fn system(operation: IoOperation, path: &Path, source: io::Error) -> IoError {
        let remedy = remedy(operation, &source).map(str::to_owned);
        IoError::new(operation, classify(&source), path).with(|details| {
            details.remedy = remedy;
            details.source = Some(source);
        })
    }

    /// Creates an error that this crate detected.
    pub(crate) fn found(
        operation: IoOperation,
        kind: IoErrorKind,
        path: &Path,
        reason: String,
    ) -> IoError {
        IoError::new(operation, kind, path).with(|details| details.reason = Some(reason))
    }

    fn new(operation: IoOperation, kind: IoErrorKind, path: &Path) -> IoError {
        IoError(Arc::new(Details {
            operation,
            kind,
            path: path.to_owned(),
            extent: None,
            mode: None,
            source: None,
            reason: None,
            remedy: None,
        }))
    }

    pub(crate) fn unexpected_eof(path: &Path, offset: u64, len: u64, file_len: u64) -> IoError {
        let reason = format!(
            "the file ends at {file_len}, {} bytes short",
            offset.saturating_add(len).saturating_sub(file_len)
        );
        IoError::found(IoOperation::Read, IoErrorKind::UnexpectedEof, path, reason).at(offset, len)
    }

    /// Adds to an error right after its construction, when it has one owner; a shared error is not changed.
    fn with(mut self, add: impl FnOnce(&mut Details)) -> IoError {
        if let Some(details) = Arc::get_mut(&mut self.0) {
            add(details);
        }
        self
    }

    pub(crate) fn at(self, offset: u64, len: u64) -> IoError {
        self.with(|details| details.extent = Some((offset, len)))
    }

    pub(crate) fn in_mode(self, mode: Mode) -> IoError {
        self.with(|details| details.mode = Some(mode))
    }

    /// Adds the alignment required by direct I/O, if the system's error is only `EINVAL`.
    pub(crate) fn with_alignment(self, alignment: u64, address: usize) -> IoError {
        if self.errno() != Some(libc::EINVAL) {
            return self;
        }
        let reason = format!(
            "offsets and lengths must be multiples of {alignment}, addresses of {DEFAULT_ALIGNMENT}; \
             the address was {address:#x}"
        );
        self.with(|details| details.reason = Some(reason))
    }

    pub(crate) fn remedy(self, remedy: impl Into<String>) -> IoError {
        self.with(|details| details.remedy = Some(remedy.into()))
    }

    /// Failed operation.
    pub fn operation(&self) -> IoOperation {
        self.0.operation
    }

    /// Kind of the error.
    pub fn kind(&self) -> IoErrorKind {
        self.0.kind
    }

    /// The file or directory.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Offset in the file, bytes, if the operation has one.
    pub fn offset(&self) -> Option<u64> {
        self.0.extent.map(|(offset, _)| offset)
    }

    /// Length from that offset, bytes.
    pub fn length(&self) -> Option<u64> {
        self.0.extent.map(|(_, len)| len)
    }

    /// Access mode of the file, if it was open.
    pub fn mode(&self) -> Option<Mode> {
        self.0.mode
    }

    /// The system's error, if it reported one.
    pub fn io_error(&self) -> Option<&io::Error> {
        self.0.source.as_ref()
    }

    /// The system's error number, if there is one.
    pub fn errno(&self) -> Option<i32> {
        self.0.source.as_ref().and_then(io::Error::raw_os_error)
    }

    /// Whether space, quota or a size limit is exhausted.
    pub fn is_no_space(&self) -> bool {
        self.0.kind == IoErrorKind::NoSpace
    }
}

impl fmt::Display for IoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let details = &*self.0;
        write!(f, "{} {}", details.operation, details.path.display())?;
        if let Some((offset, len)) = details.extent {
            write!(f, " at offset {offset}, length {len}")?;
        }
        if let Some(mode) = details.mode {
            write!(f, " ({} {mode})", mode.kind_name())?;
        }
        if let Some(source) = &details.source {
            write!(f, ": {source}")?;
        }
        if let Some(reason) = &details.reason {
            write!(f, ": {reason}")?;
        }
        if let Some(remedy) = &details.remedy {
            write!(f, "; {remedy}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for IoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for IoError {}

/// Determines the kind of a system error.
fn classify(source: &io::Error) -> IoErrorKind {
    match source.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::NOENT | Errno::NOTDIR) => IoErrorKind::NotFound,
        Some(Errno::EXIST) => IoErrorKind::AlreadyExists,
        Some(Errno::ACCESS | Errno::PERM | Errno::ROFS) => IoErrorKind::PermissionDenied,
        // EFBIG is a limit on the size of files (RLIMIT_FSIZE or the file system's own).
        Some(Errno::NOSPC | Errno::DQUOT | Errno::FBIG) => IoErrorKind::NoSpace,
        Some(Errno::OPNOTSUPP | Errno::NOSYS) => IoErrorKind::Unsupported,
        _ => IoErrorKind::Failed,
    }
}

fn remedy(operation: IoOperation, source: &io::Error) -> Option<&'static str> {
    match source.raw_os_error().map(Errno::from_raw_os_error)? {
        Errno::MFILE => Some("raise the limit of open files (`ulimit -n`)"),
        Errno::NFILE => Some("the system's limit of open files is reached (fs.file-max)"),
        Errno::NOSPC => Some("free space on this file system or write to another one"),
        Errno::DQUOT => Some("raise the quota or write to another file system"),
        Errno::FBIG => Some("raise the limit of file sizes (`ulimit -f`)"),
        Errno::IO if operation == IoOperation::Read => Some(
            "if the device has failed there, copy the file with `ddrescue`, which leaves zeros in place of what cannot \
             be read, and use the copy",
        ),
        Errno::NOMEM => Some("lower the memory budget, or raise the limits on locked memory"),
        _ => None,
    }
}

/// Whether an operation with this error is submitted again. It had no effect.
pub(crate) fn is_transient(source: &io::Error) -> bool {
    matches!(
        source.raw_os_error().map(Errno::from_raw_os_error),
        // A signal arrived, or the kernel temporarily could not queue the operation.
        Some(Errno::INTR | Errno::AGAIN)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mode::WriteMode;

    #[test]
    fn display_names_operation_file_place_mode_cause_and_remedy() {
        let error = IoError::system(
            IoOperation::Write,
            Path::new("/data/x"),
            io::Error::from_raw_os_error(libc::ENOSPC),
        )
        .at(4096, 1 << 20)
        .in_mode(Mode::Write(WriteMode::Direct));
        assert_eq!(
            error.to_string(),
            "write /data/x at offset 4096, length 1048576 (write mode direct): No space left on \
             device (os error 28); free space on this file system or write to another one"
        );
        assert!(error.is_no_space());
        assert_eq!(error.errno(), Some(libc::ENOSPC));
    }

    #[test]
    fn a_device_that_fails_to_read_has_a_remedy() {
        let failed = |operation| {
            let error = io::Error::from_raw_os_error(libc::EIO);
            IoError::system(operation, Path::new("f"), error).to_string()
        };
        assert!(failed(IoOperation::Read).contains("ddrescue"));
        assert!(!failed(IoOperation::Write).contains("ddrescue"));
    }

    #[test]
    fn misaligned_direct_io_reports_the_requirement() {
        let error = IoError::system(
            IoOperation::Read,
            Path::new("f"),
            io::Error::from_raw_os_error(libc::EINVAL),
        )
        .at(1, 2)
        .with_alignment(4096, 0x1001);
        assert!(
            error
                .to_string()
                .contains("multiples of 4096, addresses of 4096"),
            "{error}"
        );
        assert!(error.to_string().contains("0x1001"), "{error}");
    }

    #[test]
    fn a_short_file_reports_its_length() {
        let error = IoError::unexpected_eof(Path::new("f"), 8, 10, 12);
        assert_eq!(
            error.to_string(),
            "read f at offset 8, length 10: the file ends at 12, 6 bytes short"
        );
        assert_eq!(error.kind(), IoErrorKind::UnexpectedEof);
    }
}
