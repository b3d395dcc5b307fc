//! `Data.db` as a node reads it for a query: one chunk at a time, by `pread` through the page cache,
//! checked and decompressed for each read.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use compactor::Result;
use compactor_engine::input::InputSstable;
use compactor_sstable::compression::chunk::ChunkDecompressor;
use compactor_sstable::compression::info::CompressionInfo;
use compactor_sstable::{Component, Error as FormatError};

/// Bytes read at a time of a file without compression (`RandomAccessReader.DEFAULT_BUFFER_SIZE`).
/// Cassandra does not check `CRC.db` then, either.
const PLAIN_LEN: u64 = 4096;

/// An open `Data.db`.
#[derive(Debug)]
pub(crate) struct DataFile {
    file: File,
    path: PathBuf,
    storage: Storage,
}

#[derive(Debug)]
enum Storage {
    Chunks {
        info: CompressionInfo,
        decompressor: ChunkDecompressor,
    },
    Plain {
        len: u64,
    },
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
        Ok(DataFile {
            file: compactor_io::open_regular(&path)?,
            path,
            storage: match sstable.compression_info() {
                Some(info) => Storage::Chunks {
                    decompressor: ChunkDecompressor::for_file(info)?,
                    info: info.clone(),
                },
                None => Storage::Plain {
                    len: sstable.data_len(),
                },
            },
        })
    }

    /// Disables readahead. Without effect where the system refuses.
    pub(crate) fn expect_random(&self) {
        let _ = rustix::fs::fadvise(&self.file, 0, None, rustix::fs::Advice::Random);
    }

    /// Uncompressed length.
    pub(crate) fn data_len(&self) -> u64 {
        match &self.storage {
            Storage::Chunks { info, .. } => info.data_len,
            Storage::Plain { len } => *len,
        }
    }

    /// Chunks; `None` without compression.
    pub(crate) fn chunk_count(&self) -> Option<u64> {
        match &self.storage {
            Storage::Chunks { info, .. } => Some(info.chunk_count() as u64),
            Storage::Plain { .. } => None,
        }
    }

    /// The part of the file that has to be read for a part of the uncompressed content.
    pub(crate) fn stored(&self, span: &Range<u64>) -> Range<u64> {
        let last = span.end.max(span.start + 1) - 1;
        match &self.storage {
            Storage::Plain { len } => {
                let end = (last / PLAIN_LEN + 1) * PLAIN_LEN;
                span.start / PLAIN_LEN * PLAIN_LEN..end.min(*len)
            }
            Storage::Chunks { info, .. } => {
                let chunk = |position| info.chunk(info.chunk_index_of(position) as usize);
                let start = chunk(span.start).map_or(0, |chunk| chunk.offset);
                let end = chunk(last).map_or(start, |chunk| chunk.offset + chunk.stored_len);
                start..end
            }
        }
    }

    fn unit(&self) -> u64 {
        match &self.storage {
            Storage::Chunks { info, .. } => u64::from(info.params.chunk_len),
            Storage::Plain { .. } => PLAIN_LEN,
        }
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
        let unit = self.unit();
        let mut chunk = position / unit;
        let skip = (position % unit) as usize;
        buffer.bytes.clear();
        loop {
            if !self.append(chunk, buffer)? {
                return Err(FormatError::corrupt(
                    "data.partition",
                    position,
                    format!("a partition that ends within {} bytes", self.data_len()),
                    "the end of the file",
                )
                .with_file(&self.path, Component::Data)
                .into());
            }
            let bytes = buffer.bytes.get(skip..).unwrap_or_default();
            let left = self.data_len().saturating_sub(position);
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
        let failed = compactor::Error::file("read", &self.path);
        let start = buffer.bytes.len();
        match &self.storage {
            Storage::Plain { len } => {
                let offset = index * PLAIN_LEN;
                if offset >= *len {
                    return Ok(false);
                }
                let count = (len - offset).min(PLAIN_LEN) as usize;
                buffer.touch(offset..offset + count as u64);
                buffer.bytes.resize(start + count, 0);
                buffer.decompressed_bytes += count as u64;
                let target = &mut buffer.bytes[start..];
                self.file.read_exact_at(target, offset).map_err(failed)?;
            }
            Storage::Chunks { info, decompressor } => {
                let Some(chunk) = info.chunk(index as usize) else {
                    return Ok(false);
                };
                buffer.touch(chunk.offset..chunk.offset + chunk.stored_len);
                // As long as a chunk may be: `CompressionInfo::parse` validated the offsets against the file.
                buffer.stored.resize(chunk.stored_len as usize, 0);
                self.file
                    .read_exact_at(&mut buffer.stored, chunk.offset)
                    .map_err(failed)?;
                buffer.bytes.resize(start + chunk.raw_len as usize, 0);
                buffer.decompressed_bytes += u64::from(chunk.raw_len);
                let decompressor = buffer
                    .decompressor
                    .get_or_insert_with(|| decompressor.clone());
                decompressor
                    .decompress(&buffer.stored, chunk.offset, &mut buffer.bytes[start..])
                    .map_err(|e| e.with_file(&self.path, Component::Data))?;
            }
        }
        Ok(true)
    }
}

impl ReadBuffer {
    fn touch(&mut self, range: Range<u64>) {
        if let Some(touched) = &mut self.touched {
            touched.push(range);
        }
    }
}
