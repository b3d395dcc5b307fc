//! I/O modes: how bytes are transferred between a file and memory, for reads and for writes.

use std::fmt;
use std::str::FromStr;

/// I/O mode of reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum ReadMode {
    /// [`Direct`](Self::Direct) if `statx` reports that it is supported, otherwise
    /// [`DontNeed`](Self::DontNeed); each fallback is recorded once per directory.
    #[default]
    Auto,
    /// `O_DIRECT`: bypasses the page cache. Fails if the file system does not support it.
    Direct,
    /// Through the page cache, with the kernel's readahead.
    Buffered,
    /// Through the page cache, dropping pages shortly after they are read (`POSIX_FADV_DONTNEED`), even if
    /// other readers use them.
    DontNeed,
    /// Through the page cache with `RWF_DONTCACHE` (Linux 6.14): pages that this read loaded are dropped when
    /// it is done, pages that were cached before are kept. Only on the `threads` backend.
    DontCache,
}

/// I/O mode of writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum WriteMode {
    /// [`Direct`](Self::Direct) if `statx` reports that it is supported, otherwise
    /// [`DontNeed`](Self::DontNeed); each fallback is recorded once per directory.
    #[default]
    Auto,
    /// `O_DIRECT`: bypasses the page cache. Fails if the file system does not support it.
    Direct,
    /// Through the page cache; the kernel decides when to write back, at the latest at the end.
    Buffered,
    /// Through the page cache, with write-back forced every few mebibytes (`sync_file_range`), as intended by
    /// Cassandra's `trickle_fsync`. The pages stay cached.
    Trickle,
    /// As [`Trickle`](Self::Trickle), and written pages are dropped (`POSIX_FADV_DONTNEED`).
    DontNeed,
    /// Through the page cache with `RWF_DONTCACHE` (Linux 6.14). Only on the `threads` backend.
    DontCache,
}

/// Kind of backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum BackendKind {
    /// [`Uring`](Self::Uring) if it works here and the mode permits it, otherwise [`Threads`](Self::Threads).
    #[default]
    Auto,
    /// `io_uring`, with one I/O thread.
    Uring,
    /// `io_uring` through `tokio-uring`, with one I/O thread. Never chosen by `auto`: it discards the
    /// errors of `io_uring_enter`, so a run may take minutes to detect that it cannot continue.
    TokioUring,
    /// A pool of threads that call `preadv2` and `pwritev2`.
    Threads,
}

/// Error of a word that is not the name of a mode or backend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownName {
    what: &'static str,
    found: String,
    known: &'static [&'static str],
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "unknown {} `{}`, expected one of {}",
            self.what,
            self.found,
            { self.known.join(", ") }
        )
    }
}

impl std::error::Error for UnknownName {}

macro_rules! names {
    ($type:ident, $what:literal, $($variant:ident => $name:literal),+ $(,)?) => {
        impl $type {
            /// All values, in the order of the documentation.
            pub const ALL: &'static [$type] = &[$($type::$variant),+];

            /// Name used in options and reports.
            pub fn name(self) -> &'static str {
                match self { $($type::$variant => $name),+ }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }

        impl FromStr for $type {
            type Err = UnknownName;

            fn from_str(text: &str) -> Result<Self, UnknownName> {
                match text {
                    $($name => Ok($type::$variant),)+
                    _ => Err(UnknownName {
                        what: $what,
                        found: text.to_owned(),
                        known: &[$($name),+],
                    }),
                }
            }
        }
    };
}

names!(ReadMode, "read mode",
    Auto => "auto", Direct => "direct", Buffered => "buffered",
    DontNeed => "dontneed", DontCache => "dontcache");
names!(WriteMode, "write mode",
    Auto => "auto", Direct => "direct", Buffered => "buffered", Trickle => "trickle",
    DontNeed => "dontneed", DontCache => "dontcache");
names!(BackendKind, "backend",
    Auto => "auto", Uring => "uring", TokioUring => "tokio-uring", Threads => "threads");

/// A mode with its direction, for errors and reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mode {
    /// A read mode.
    Read(ReadMode),
    /// A write mode.
    Write(WriteMode),
}

impl Mode {
    /// Name of the mode without the direction.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Read(mode) => mode.name(),
            Mode::Write(mode) => mode.name(),
        }
    }

    /// Its kind in messages.
    pub(crate) fn kind_name(self) -> &'static str {
        match self {
            Mode::Read(_) => "read mode",
            Mode::Write(_) => "write mode",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse_back_and_unknown_ones_list_the_choices() {
        for &mode in ReadMode::ALL {
            assert_eq!(mode.to_string().parse(), Ok(mode));
        }
        for &mode in WriteMode::ALL {
            assert_eq!(mode.to_string().parse(), Ok(mode));
        }
        for &kind in BackendKind::ALL {
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
        let error = "trickle".parse::<ReadMode>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "unknown read mode `trickle`, expected one of auto, direct, buffered, dontneed, \
             dontcache"
        );
    }
}
