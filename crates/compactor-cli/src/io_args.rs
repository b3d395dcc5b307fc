//! Options of the commands that read and write SSTables: how the bytes move.

use compactor::{Error, Resources};
use compactor_io::{BackendKind, ReadMode, WriteMode};

use crate::flags::{ByteSize, refuse_uring_with_dontcache};
use crate::numbers::{DEFAULT_MEMORY, MEMORY, READAHEAD, THREADS, besides_program, within};

/// How inputs are read and outputs written.
#[derive(Debug, clap::Args)]
pub struct IoArgs {
    /// How inputs are read: auto, direct, buffered, dontneed, dontcache.
    #[arg(
        long,
        help_heading = "Input and output",
        value_name = "MODE",
        default_value = "auto"
    )]
    pub read_io: ReadMode,

    /// How the output is written: auto, direct, buffered, trickle, dontneed, dontcache.
    #[arg(
        long,
        help_heading = "Input and output",
        value_name = "MODE",
        default_value = "auto"
    )]
    pub write_io: WriteMode,

    /// I/O backend: auto, uring, tokio-uring, threads.
    #[arg(
        long,
        help_heading = "Input and output",
        value_name = "BACKEND",
        default_value = "auto"
    )]
    pub backend: BackendKind,

    /// Bytes read ahead per input, 4KiB to 1GiB, as far as --memory allows. Default: 4MiB.
    #[arg(
        long,
        help_heading = "Input and output",
        value_name = "SIZE",
        value_parser = within(READAHEAD)
    )]
    readahead: Option<ByteSize>,

    /// Worker threads, 1 to 1024; the output is the same for any number. Default: one per processor.
    #[arg(
        long,
        help_heading = "Input and output",
        value_name = "N",
        value_parser = within(THREADS)
    )]
    threads: Option<usize>,

    /// Memory of the whole process, 1MiB to 1TiB. It includes buffers and memory that grows with the inputs: some 4KiB
    /// per SSTable, 8 bytes per chunk, about a byte per partition for Bloom filters, and some ten bytes per partition
    /// for index files of BTI inputs. At least a quarter is left for buffers: if the rest is not enough, or with less
    /// than 48MiB, a run takes more memory than this.
    #[arg(
        long,
        help_heading = "Input and output",
        value_name = "SIZE",
        default_value = DEFAULT_MEMORY,
        value_parser = within(MEMORY)
    )]
    memory: ByteSize,
}

impl IoArgs {
    /// Refuses incompatible options before anything is opened.
    pub fn check(&self) -> Result<(), Error> {
        refuse_uring_with_dontcache(
            self.backend,
            &[
                ("--read-io", self.read_io == ReadMode::DontCache),
                ("--write-io", self.write_io == WriteMode::DontCache),
            ],
        )
    }

    /// Threads that do the work.
    fn threads(&self) -> usize {
        self.threads
            .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
    }

    /// Returns the bytes of `--memory` that remain after the program itself.
    fn memory_bytes(&self) -> usize {
        besides_program(self.memory)
    }

    /// The options as the library takes them.
    pub fn resources(&self) -> Resources {
        let mut resources = Resources::default();
        resources.read_mode = self.read_io;
        resources.write_mode = self.write_io;
        resources.backend = self.backend;
        resources.threads = self.threads();
        resources.memory_bytes = self.memory_bytes();
        resources.readahead_bytes = self
            .readahead
            .map(|size| usize::try_from(size.0).unwrap_or(usize::MAX));
        resources
    }
}
