//! `Data.db` as a node reads it for a query: one chunk at a time, by `pread` through the page cache,
//! checked and decompressed for each read.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use compactor::Result;
use compactor_engine::input::InputSstable;
use compactor_sstable::compression::chunk::ChunkDecompressor;
use compactor_sstable::compression::info::{CompressionInfo, StoredChunk};
use compactor_sstable::{Component, Error as FormatError};

/// Bytes read at a time of a file without compression (`RandomAccessReader.DEFAULT_BUFFER_SIZE`).
/// Cassandra does not check `CRC.db` then, either.
const PLAIN_LEN: u64 = 4096;

/// An open `Data.db`.
#[derive(Debug)]
pub(crate) struct DataFile {
    file: File,
    path: PathBuf,
    /// Uncompressed length.
    pub(crate) data_len: u64,
    /// Uncompressed bytes that are read at a time.
    unit: u64,
    compression: Option<(CompressionInfo, ChunkDecompressor)>,
}

/// Buffers of a thread that reads a [`DataFile`].
#[derive(Debug, Default)]
pub(crate) struct ReadBuffer {
    stored: Vec<u8>,
    /// Uncompressed bytes from a position.
    bytes: Vec<u8>,
    decompressor: Option<ChunkDecompressor>,
    /// Bytes that came out of decompression, or without it were read.
    pub(crate) decompressed_bytes: u64,
    /// Parts of the file that were read, if recorded.
    pub(crate) touched: Option<Vec<Range<u64>>>,
}

impl DataFile {
    /// Opens that of an SSTable.
    ///
    /// # Errors
    /// A failed open, or something else than a regular file.
    pub(crate) fn open(sstable: &InputSstable) -> Result<DataFile> {
        let path = sstable.data_path();
        let compression = match sstable.compression_info() {
            Some(info) => Some((info.clone(), ChunkDecompressor::for_file(info)?)),
            None => None,
        };
        Ok(DataFile {
            file: compactor_io::open_regular(&path)?,
            path,
            data_len: sstable.data_len(),
            unit: compression
                .as_ref()
                .map_or(PLAIN_LEN, |(info, _)| u64::from(info.params.chunk_len)),
            compression,
        })
    }

    /// Disables readahead. Without effect where the system refuses.
    pub(crate) fn expect_random(&self) {
        let _ = rustix::fs::fadvise(&self.file, 0, None, rustix::fs::Advice::Random);
    }

    /// Chunks; `None` without compression.
    pub(crate) fn chunk_count(&self) -> Option<u64> {
        let (info, _) = self.compression.as_ref()?;
        Some(info.chunk_count() as u64)
    }

    /// Unit of a read: a chunk, or as many bytes of a file without chunks. `None` after the last.
    fn chunk(&self, index: u64) -> Option<StoredChunk> {
        if let Some((info, _)) = &self.compression {
            return info.chunk(index as usize);
        }
        let offset = index * PLAIN_LEN;
        let left = self.data_len.checked_sub(offset).filter(|left| *left > 0)?;
        let len = left.min(PLAIN_LEN);
        Some(StoredChunk {
            offset,
            stored_len: len,
            raw_len: len as u32,
        })
    }

    /// The part of the file that has to be read for a part of the uncompressed content.
    pub(crate) fn stored(&self, span: &Range<u64>) -> Range<u64> {
        let last = span.end.max(span.start + 1) - 1;
        let chunk = |position| self.chunk(position / self.unit);
        let start = chunk(span.start).map_or(0, |chunk| chunk.offset);
        let end = chunk(last).map_or(start, |chunk| chunk.offset + chunk.stored_len);
        start..end
    }

    /// Reads from `position` of the uncompressed content to the end of its chunk, and gives what
    /// `parse` makes of that. Reads on, chunk by chunk, as long as `parse` answers `None`: there is not
    /// enough yet. It is given the bytes from `position` on, and how many the file has from there.
    ///
    /// # Errors
    /// Damage, also what `parse` finds, or a failed read.
    pub(crate) fn read_from<T>(
        &self,
        position: u64,
        buffer: &mut ReadBuffer,
        mut parse: impl FnMut(&[u8], u64) -> Result<Option<T>, FormatError>,
    ) -> Result<T> {
        let mut chunk = position / self.unit;
        let skip = (position % self.unit) as usize;
        buffer.bytes.clear();
        loop {
            if !self.append(chunk, buffer)? {
                return Err(FormatError::corrupt(
                    "data.partition",
                    position,
                    format!("a partition that ends within {} bytes", self.data_len),
                    "the end of the file",
                )
                .with_file(&self.path, Component::Data)
                .into());
            }
            let bytes = buffer.bytes.get(skip..).unwrap_or_default();
            let left = self.data_len.saturating_sub(position);
            let found = parse(bytes, left)
                .map_err(|e| e.at_base(position).with_file(&self.path, Component::Data))?;
            if let Some(found) = found {
                return Ok(found);
            }
            chunk += 1;
        }
    }

    /// Appends the content of a chunk; false after the last.
    fn append(&self, index: u64, buffer: &mut ReadBuffer) -> Result<bool> {
        let Some(chunk) = self.chunk(index) else {
            return Ok(false);
        };
        if let Some(touched) = &mut buffer.touched {
            touched.push(chunk.offset..chunk.offset + chunk.stored_len);
        }
        let start = buffer.bytes.len();
        buffer.bytes.resize(start + chunk.raw_len as usize, 0);
        buffer.decompressed_bytes += u64::from(chunk.raw_len);
        let content = &mut buffer.bytes[start..];
        let read = |target: &mut [u8]| {
            let read = self.file.read_exact_at(target, chunk.offset);
            read.map_err(compactor::Error::file("read", &self.path))
        };
        let Some((_, decompressor)) = &self.compression else {
            read(content)?;
            return Ok(true);
        };
        // As long as a chunk may be: `CompressionInfo::parse` validated the offsets against the file.
        buffer.stored.resize(chunk.stored_len as usize, 0);
        read(&mut buffer.stored)?;
        let decompressor = buffer
            .decompressor
            .get_or_insert_with(|| decompressor.clone());
        decompressor
            .decompress(&buffer.stored, chunk.offset, content)
            .map_err(|e| e.with_file(&self.path, Component::Data))?;
        Ok(true)
    }
}
