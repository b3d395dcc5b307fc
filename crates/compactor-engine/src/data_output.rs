//! `Data.db` on its way out: blocks of whole chunks are compressed by any worker and written in order.
//!
//! The merge fills a block and hands it over; a worker compresses it and then, holding the order's
//! lock, writes it and every block that waited for it. A block's memory comes back to the merge only
//! when it has been written, which bounds what is under way.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use compactor_io::{SequentialWriter, WrittenFile};
use compactor_sstable::compression::chunk::ChunkCompressor;
use compactor_sstable::compression::crc_file::{CrcFile, DEFAULT_CRC_CHUNK_LEN};
use compactor_sstable::compression::crc32;
use compactor_sstable::compression::crc32_run::Crc32Run;
use compactor_sstable::compression::info::{CompressionInfo, CompressionParams};

use crate::error::{Error, Result};
use crate::free_blocks::FreeBlocks;
use crate::partition_writer::BlockOutput;
use crate::workers::WorkerQueue;

/// Uncompressed bytes that are compressed as one task, at least.
const BLOCK_LEN: usize = 256 << 10;

/// `Data.db` being written.
#[derive(Debug)]
pub struct DataOutput {
    shared: Arc<Shared>,
    queue: WorkerQueue,
    block_len: usize,
    next: u64,
    /// Uncompressed bytes of the blocks that were put.
    put: u64,
    chunk: Option<ChunkLengths>,
}

/// Lengths of a whole chunk in bytes.
#[derive(Clone, Copy, Debug)]
struct ChunkLengths {
    raw: u64,
    /// What it may come to at most, with its checksum.
    max_stored: u64,
}

/// What is known once `Data.db` is complete.
#[derive(Debug)]
pub struct FinishedData {
    /// The file, synced.
    pub file: WrittenFile,
    /// CRC32 of the whole file.
    pub digest: u32,
    /// Chunks, when compressed.
    pub compression_info: Option<CompressionInfo>,
    /// Chunk checksums, when not compressed.
    pub crc_file: Option<CrcFile>,
}

struct Shared {
    params: Option<CompressionParams>,
    cancelled: Arc<AtomicBool>,
    compressors: Mutex<Vec<(ChunkCompressor, Vec<u8>)>>,
    ordered: Mutex<Ordered>,
    free: FreeBlocks,
    /// A block is missing, and no other is written any more. The error is in `ordered`, whose lock is held
    /// while a block is written, until somebody takes it.
    has_failed: AtomicBool,
    /// Bytes on disk. Grows before `encoded` does.
    written: AtomicU64,
    /// Uncompressed bytes of the blocks that are on disk.
    encoded: AtomicU64,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("params", &self.params)
            .finish_non_exhaustive()
    }
}

/// A block ready to be written.
struct Stored {
    /// The memory that goes back to the merge; the bytes to write if not compressed.
    raw: Vec<u8>,
    /// If compressed: compressor, and memory that begins with so many bytes of chunks and checksums.
    compressed: Option<(ChunkCompressor, Vec<u8>, usize)>,
    /// Uncompressed and stored length of each chunk.
    chunks: Vec<(u32, u32)>,
    /// Checksums for `CRC.db`, if not compressed.
    crcs: Vec<u32>,
    /// CRC32 over the stored bytes.
    digest: Crc32Run,
}

struct Ordered {
    next: u64,
    waiting: BTreeMap<u64, Result<Stored>>,
    writer: Option<SequentialWriter>,
    info: Option<CompressionInfo>,
    crcs: Vec<u32>,
    digest: Crc32Run,
    error: Option<Error>,
}

impl DataOutput {
    /// Writes to `writer`, compressed as `params` say, with at most `max_blocks` blocks under way.
    ///
    /// # Errors
    /// Unsupported, if the codec is.
    pub fn new(
        writer: SequentialWriter,
        params: Option<CompressionParams>,
        max_blocks: usize,
        queue: WorkerQueue,
        cancelled: Arc<AtomicBool>,
    ) -> Result<DataOutput> {
        let chunk_len = params
            .as_ref()
            .map_or(DEFAULT_CRC_CHUNK_LEN, |p| p.chunk_len) as usize;
        let block_len = BLOCK_LEN.next_multiple_of(chunk_len);
        let mut compressors = Vec::new();
        let mut chunk = None;
        if let Some(params) = &params {
            let compressor = ChunkCompressor::new(params)?;
            chunk = Some(ChunkLengths {
                raw: chunk_len as u64,
                max_stored: compressor.max_stored_len(chunk_len) as u64,
            });
            compressors.push((compressor, Vec::new()));
        }
        let ordered = Ordered {
            next: 0,
            waiting: BTreeMap::new(),
            writer: Some(writer),
            info: params.clone().map(CompressionInfo::new),
            crcs: Vec::new(),
            digest: Crc32Run::default(),
            error: None,
        };
        let shared = Arc::new(Shared {
            params,
            cancelled,
            compressors: Mutex::new(compressors),
            ordered: Mutex::new(ordered),
            free: FreeBlocks::new(max_blocks.max(2), queue.threads()),
            has_failed: AtomicBool::new(false),
            written: AtomicU64::new(0),
            encoded: AtomicU64::new(0),
        });
        Ok(DataOutput {
            shared,
            queue,
            block_len,
            next: 0,
            put: 0,
            chunk,
        })
    }

    /// Bytes written to the file so far.
    pub fn stored_bytes(&self) -> u64 {
        self.shared.written.load(Ordering::Relaxed)
    }

    /// Uncompressed bytes of a chunk; `None` if nothing is compressed.
    pub fn chunk_len(&self) -> Option<usize> {
        self.chunk.map(|chunk| chunk.raw as usize)
    }

    /// What the blocks that were put and `more` bytes behind them, whole chunks, may come to on disk
    /// at most.
    pub fn max_stored_bytes(&self, more: u64) -> u64 {
        // In this order: a block written meanwhile is then counted twice, not left out.
        let encoded = self.shared.encoded.load(Ordering::Acquire);
        let written = self.stored_bytes();
        let open = (self.put - encoded).saturating_add(more);
        written.saturating_add(match self.chunk {
            None => open,
            Some(chunk) => open.div_ceil(chunk.raw).saturating_mul(chunk.max_stored),
        })
    }

    /// Waits until every block that was put is written. The caller holds one buffer, as from
    /// [`take_buffer`](BlockOutput::take_buffer).
    ///
    /// # Errors
    /// The first failure of any block, or cancellation.
    pub fn wait(&mut self) -> Result<()> {
        self.shared.free.wait_for_all_but(1);
        self.shared.check()
    }

    /// Waits for all blocks, syncs and closes the file.
    ///
    /// # Errors
    /// The first failure of any block.
    pub fn finish(self) -> Result<FinishedData> {
        // Every block's memory comes back after it was written or given up.
        self.shared.free.wait_for_all_but(0);
        let mut ordered = lock(&self.shared.ordered);
        if self.shared.has_failed.load(Ordering::Acquire) {
            return Err(ordered.error.take().unwrap_or_else(lost));
        }
        let mut writer = ordered.writer.take().ok_or_else(lost)?;
        self.shared
            .end_with_empty_chunk(&mut ordered, &mut writer)?;
        let file = writer.finish()?;
        let crc_file = match self.shared.params {
            Some(_) => None,
            None => Some(CrcFile {
                chunk_len: DEFAULT_CRC_CHUNK_LEN,
                crcs: std::mem::take(&mut ordered.crcs),
            }),
        };
        Ok(FinishedData {
            file,
            digest: ordered.digest.value(),
            compression_info: ordered.info.take(),
            crc_file,
        })
    }
}

fn lost() -> Error {
    Error::Internal("compress workers ended".to_owned())
}

fn panicked() -> Error {
    Error::Internal("panic while a block of Data.db was written, of which stderr tells".to_owned())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic elsewhere is reported by its own thread; the state here is only ever appended to.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl BlockOutput for DataOutput {
    fn block_len(&self) -> usize {
        self.block_len
    }

    fn take_buffer(&mut self) -> Result<Vec<u8>> {
        let mut buffer = self.shared.free.take();
        self.shared.check()?;
        buffer.clear();
        // A row longer than a block made it grow: that memory is not kept.
        buffer.shrink_to(self.block_len + self.block_len / 4);
        buffer.reserve(self.block_len + self.block_len / 8);
        Ok(buffer)
    }

    fn put_block(&mut self, block: Vec<u8>) {
        let number = self.next;
        self.next += 1;
        self.put += block.len() as u64;
        let delivery = Delivery {
            shared: Arc::clone(&self.shared),
            number,
            is_done: false,
        };
        self.queue.submit(Box::new(move || {
            let stored = delivery.shared.encode(block);
            delivery.deliver(stored);
        }));
    }
}

/// Delivers one block exactly once, as a failure if its task never ran.
struct Delivery {
    shared: Arc<Shared>,
    number: u64,
    is_done: bool,
}

impl Delivery {
    fn deliver(mut self, stored: Result<Stored>) {
        self.is_done = true;
        self.shared.deliver(self.number, stored);
    }
}

impl Drop for Delivery {
    fn drop(&mut self) {
        if !self.is_done {
            self.shared.deliver(self.number, Err(lost()));
        }
    }
}

impl Shared {
    /// The first failure of any block, or cancellation.
    fn check(&self) -> Result<()> {
        if self.cancelled.load(Ordering::Relaxed) {
            return Err(Error::Cancelled);
        }
        if !self.has_failed.load(Ordering::Acquire) {
            return Ok(());
        }
        Err(lock(&self.ordered).error.take().unwrap_or_else(lost))
    }

    fn encode(&self, raw: Vec<u8>) -> Result<Stored> {
        let mut digest = Crc32Run::default();
        let Some(params) = &self.params else {
            let chunks = raw.chunks(DEFAULT_CRC_CHUNK_LEN as usize);
            let mut crcs = Vec::with_capacity(chunks.len());
            for chunk in chunks {
                let crc = crc32(chunk);
                digest.append(crc, chunk.len() as u64);
                crcs.push(crc);
            }
            return Ok(Stored {
                raw,
                compressed: None,
                chunks: Vec::new(),
                crcs,
                digest,
            });
        };
        let recycled = lock(&self.compressors).pop();
        let (mut compressor, mut out) = match recycled {
            Some(recycled) => recycled,
            None => (ChunkCompressor::new(params)?, Vec::new()),
        };
        let mut chunks = Vec::with_capacity(raw.len() / params.chunk_len as usize + 1);
        let mut len = 0;
        for chunk in raw.chunks(params.chunk_len as usize) {
            // What an earlier block left there is overwritten, not cleared first.
            let room = len + compressor.max_stored_len(chunk.len());
            if out.len() < room {
                out.resize(room, 0);
            }
            let lengths = compressor.compress_into(chunk, &mut out[len..])?;
            chunks.push((chunk.len() as u32, lengths.stored_len));
            digest.append_chunk(lengths.crc, u64::from(lengths.payload_len));
            len += lengths.stored_len as usize;
        }
        let compressed = Some((compressor, out, len));
        Ok(Stored {
            raw,
            compressed,
            chunks,
            crcs: Vec::new(),
            digest,
        })
    }

    /// Appends an empty chunk where the content ends exactly where a chunk does. Cassandra's extended verifier
    /// seeks to the end of the content, for which there has to be a chunk (`RandomAccessReader.seek`,
    /// `CompressionMetadata.chunkFor`); outputs of a node's compactions always end in one.
    fn end_with_empty_chunk(
        &self,
        ordered: &mut Ordered,
        writer: &mut SequentialWriter,
    ) -> Result<()> {
        let (Some(params), Some(info)) = (&self.params, &mut ordered.info) else {
            return Ok(());
        };
        let ends_with_chunk = info.data_len.is_multiple_of(u64::from(params.chunk_len));
        if info.data_len == 0 || !ends_with_chunk {
            return Ok(());
        }
        let mut stored = Vec::new();
        let lengths = ChunkCompressor::new(params)?.compress(&[], &mut stored)?;
        writer.write_all(&stored)?;
        info.push_chunk(0, lengths.stored_len);
        ordered
            .digest
            .append_chunk(lengths.crc, u64::from(lengths.payload_len));
        self.written
            .fetch_add(stored.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    fn deliver(&self, number: u64, stored: Result<Stored>) {
        let mut free = Vec::new();
        let mut ordered = lock(&self.ordered);
        ordered.waiting.insert(number, stored);
        loop {
            let next = ordered.next;
            let Some(stored) = ordered.waiting.remove(&next) else {
                break;
            };
            ordered.next += 1;
            let raw = match stored {
                Ok(stored) => {
                    // The merge waits for the memory of every block, also of one that was in a panic.
                    let write = || self.write(&mut ordered, stored);
                    catch_unwind(AssertUnwindSafe(write)).map_err(|_| panicked())
                }
                Err(error) => Err(error),
            };
            let raw = raw.unwrap_or_else(|error| {
                ordered.error.get_or_insert(error);
                Vec::new()
            });
            free.push(raw);
        }
        if ordered.error.is_some() {
            self.has_failed.store(true, Ordering::Release);
        }
        // Whoever this wakes does not wait for the lock then.
        drop(ordered);
        for block in free {
            self.free.put(block);
        }
    }

    fn write(&self, ordered: &mut Ordered, stored: Stored) -> Vec<u8> {
        let Stored {
            raw,
            compressed,
            chunks,
            crcs,
            digest,
        } = stored;
        if ordered.error.is_none() && !self.has_failed.load(Ordering::Relaxed) {
            let bytes = match &compressed {
                Some((_, out, len)) => &out[..*len],
                None => &raw[..],
            };
            match &mut ordered.writer {
                Some(writer) => {
                    if let Err(error) = writer.write_all(bytes) {
                        ordered.error = Some(error.into());
                    }
                }
                None => ordered.error = Some(lost()),
            }
            self.written
                .fetch_add(bytes.len() as u64, Ordering::Relaxed);
            self.encoded.fetch_add(raw.len() as u64, Ordering::Release);
            ordered.digest.append_run(&digest);
            ordered.crcs.extend_from_slice(&crcs);
            if let Some(info) = &mut ordered.info {
                for (raw_len, stored_len) in chunks {
                    info.push_chunk(raw_len, stored_len);
                }
            }
        }
        if let Some((compressor, out, _)) = compressed {
            lock(&self.compressors).push((compressor, out));
        }
        raw
    }
}

#[cfg(test)]
mod tests {
    use compactor_io::{Io, IoOptions, WriteMode, WriterOptions};
    use compactor_sstable::compression::codec::Codec;

    use super::*;
    use crate::workers::Workers;

    /// A merge that goes on to its end, only to be told then, fills a disk for nothing.
    #[test]
    fn who_takes_a_block_hears_of_one_that_failed() {
        let temp = tempfile::tempdir().unwrap();
        let io = Io::new(IoOptions::default()).unwrap();
        let path = temp.path().join("nb-1-big-Data.db");
        let options = WriterOptions::default();
        let writer = io.create(&path, WriteMode::Buffered, options).unwrap();
        let workers = Workers::start(1).unwrap();
        let mut output = DataOutput::new(writer, None, 4, workers.queue(), Arc::default()).unwrap();
        let block = output.take_buffer().unwrap();
        // Nobody is left to write it.
        drop(workers);
        output.put_block(block);
        assert!(output.take_buffer().is_err());
        // Whatever becomes of the error, the file has a hole.
        assert!(output.wait().is_err());
        output.put_block(Vec::new());
        assert!(output.finish().is_err());
    }

    #[test]
    fn a_panic_in_a_write_is_an_error_to_the_merge() {
        let temp = tempfile::tempdir().unwrap();
        let io = Io::new(IoOptions::default()).unwrap();
        let path = temp.path().join("nb-1-big-Data.db");
        let options = WriterOptions::default();
        let writer = io.create(&path, WriteMode::Buffered, options).unwrap();
        let params = CompressionParams::new(Codec::Lz4, 16 << 10);
        let workers = Workers::start(1).unwrap();
        let queue = workers.queue();
        let mut output = DataOutput::new(writer, Some(params), 4, queue, Arc::default()).unwrap();
        let raw = output.take_buffer().unwrap();
        let compressor = lock(&output.shared.compressors).pop().unwrap().0;
        let stored = Stored {
            raw,
            // More than there is.
            compressed: Some((compressor, Vec::new(), 1)),
            chunks: Vec::new(),
            crcs: Vec::new(),
            digest: Crc32Run::default(),
        };
        output.shared.deliver(0, Ok(stored));
        let error = output.finish().unwrap_err().to_string();
        assert!(error.contains("panic"), "{error}");
    }
}
