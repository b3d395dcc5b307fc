//! How many inputs of the whole merge each partition of an intermediate SSTable came from: beside it, in
//! the order of its partitions, so that a merge in passes counts as one in a single pass does.
//!
//! ```text
//! unsigned vint count, for each partition
//! ```

use std::path::{Path, PathBuf};

use compactor_io::{Io, ReadMode, SequentialWriter, WriteMode, WriterOptions};
use compactor_sstable::vint;

use crate::error::{Error, Result};

/// Bytes that are written and read at a time.
const BUFFER_BYTES: usize = 64 << 10;

/// Writes the counts.
#[derive(Debug)]
pub struct OriginCountsWriter {
    file: SequentialWriter,
}

impl OriginCountsWriter {
    /// Creates the file.
    ///
    /// # Errors
    /// A failed file operation.
    pub fn create(io: &Io, path: &Path, mode: WriteMode) -> Result<OriginCountsWriter> {
        let options = WriterOptions {
            buffer_bytes: BUFFER_BYTES,
            in_flight: 2,
            ..WriterOptions::default()
        };
        let file = io.create(path, mode, options)?;
        Ok(OriginCountsWriter { file })
    }

    /// Adds the count of the next partition.
    ///
    /// # Errors
    /// A failed write.
    pub fn push(&mut self, count: u64) -> Result<()> {
        let (bytes, len) = vint::encode(count);
        Ok(self.file.write_all(&bytes[..len])?)
    }

    /// Ends the file.
    ///
    /// # Errors
    /// A failed write.
    pub fn finish(self) -> Result<()> {
        self.file.finish()?;
        Ok(())
    }
}

/// Reads the counts. The file is open only while it is read: there is one for each of many inputs.
#[derive(Debug)]
pub struct OriginCounts {
    io: Io,
    path: PathBuf,
    mode: ReadMode,
    offset: u64,
    is_at_end: bool,
    bytes: Vec<u8>,
    at: usize,
}

impl OriginCounts {
    /// Before the first partition.
    pub fn new(io: Io, path: PathBuf, mode: ReadMode) -> OriginCounts {
        OriginCounts {
            io,
            path,
            mode,
            offset: 0,
            is_at_end: false,
            bytes: Vec::new(),
            at: 0,
        }
    }

    /// The count of the next partition.
    ///
    /// # Errors
    /// A failed read, or no more counts.
    pub fn next_count(&mut self) -> Result<u64> {
        if self.bytes.len() - self.at < vint::MAX_LEN {
            self.read_on()?;
        }
        vint::read_unsigned(&self.bytes, &mut self.at).ok_or_else(|| {
            let path = self.path.display();
            Error::Internal(format!("{path}: too few counts"))
        })
    }

    /// Reads the next bytes behind those that are left.
    fn read_on(&mut self) -> Result<()> {
        self.bytes.drain(..self.at);
        self.at = 0;
        if self.is_at_end {
            return Ok(());
        }
        let file = self.io.open(&self.path, self.mode)?;
        let len = file.len().saturating_sub(self.offset);
        let now = len.min(BUFFER_BYTES as u64);
        if now > 0 {
            let extent = file.read_at(self.offset, now as usize)?;
            self.bytes.extend_from_slice(&extent);
            self.offset += now;
        }
        self.is_at_end = now == len;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use compactor_io::IoOptions;

    use super::*;

    #[test]
    fn counts_come_back() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("counts");
        let io = Io::new(IoOptions::default()).unwrap();
        let mut writer = OriginCountsWriter::create(&io, &path, WriteMode::Auto).unwrap();
        // More than a buffer, and a count across its end.
        let counts = |n: u64| {
            if n.is_multiple_of(3) {
                1
            } else {
                n * 1_000_003
            }
        };
        for n in 0..30_000 {
            writer.push(counts(n)).unwrap();
        }
        writer.finish().unwrap();
        let mut reader = OriginCounts::new(io, path, ReadMode::Auto);
        for n in 0..30_000 {
            assert_eq!(reader.next_count().unwrap(), counts(n));
        }
        assert!(reader.next_count().is_err());
    }
}
