//! Output of `Data.db`: whole chunks are compressed by any thread and written in order.
//!
//! Blocks may have any length. The whole chunks of a block become a task; only the bytes of a chunk that
//! straddles two blocks are copied. The thread that has compressed a block writes it and the following blocks
//! that are ready, unless another thread is writing, which then continues with it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use compactor_io::{SequentialWriter, WrittenFile, lock};
use compactor_sstable::compression::chunk::ChunkCompressor;
use compactor_sstable::compression::crc_file::{CrcFile, DEFAULT_CRC_CHUNK_LEN};
use compactor_sstable::compression::crc32;
use compactor_sstable::compression::crc32_run::Crc32Run;
use compactor_sstable::compression::info::{CompressionInfo, CompressionParams};

use crate::error::{Error, Result};
use crate::read::workers::WorkerQueue;
use crate::write::output_blocks::OutputBlocks;
use crate::write::pending::Pending;

/// Minimum uncompressed bytes compressed as one task.
const BLOCK_LEN: usize = 256 << 10;

/// `Data.db` being written.
#[derive(Debug)]
pub struct DataOutput {
    shared: Arc<Shared>,
    queue: WorkerQueue,
    chunk: ChunkLengths,
    /// Bytes after the last chunk that has been submitted, at most a chunk. It is never empty, so that a
    /// chunk is written only when more bytes follow, as in Cassandra (see [`exceeds`](DataOutput::exceeds)).
    carry: Vec<u8>,
    next: u64,
    /// Uncompressed bytes submitted as tasks.
    put: u64,
}

/// Lengths of a whole chunk, bytes.
#[derive(Clone, Copy, Debug)]
struct ChunkLengths {
    raw: usize,
    /// Maximum stored length, including its checksum.
    max_stored: u64,
}

/// Results of a complete `Data.db`.
#[derive(Debug)]
pub struct FinishedData {
    /// The file, synced.
    pub file: WrittenFile,
    /// CRC32 of the whole file.
    pub digest: u32,
    /// Chunk offsets, if compressed.
    pub compression_info: Option<CompressionInfo>,
    /// Chunk checksums, if not compressed.
    pub crc_file: Option<CrcFile>,
}

struct Shared {
    params: Option<CompressionParams>,
    cancelled: Arc<AtomicBool>,
    compressors: Mutex<Vec<(ChunkCompressor, Vec<u8>)>>,
    ordered: Mutex<Ordered>,
    blocks: Arc<OutputBlocks>,
    /// Tasks of this file.
    own: Pending,
    /// Whether a block has failed, after which no other is written. The error is in `ordered` until it is
    /// taken.
    has_failed: AtomicBool,
    /// Stored bytes on disk.
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

/// Bytes to be compressed: whole chunks, except at the end of the file.
struct Raw {
    /// Chunk that straddled two blocks.
    head: Vec<u8>,
    block: Vec<u8>,
    of_block: Range<usize>,
}

impl Raw {
    fn len(&self) -> usize {
        self.head.len() + self.of_block.len()
    }

    fn parts(&self) -> [&[u8]; 2] {
        let of_block = self.block.get(self.of_block.clone());
        [&self.head, of_block.unwrap_or_default()]
    }
}

/// Bytes ready to be written.
struct Stored {
    /// Uncompressed length.
    raw_len: usize,
    bytes: StoredBytes,
    /// Uncompressed and stored length of each chunk.
    chunks: Vec<(u32, u32)>,
    /// Checksums for `CRC.db`, if not compressed.
    crcs: Vec<u32>,
    /// CRC32 of the stored bytes.
    digest: Crc32Run,
}

enum StoredBytes {
    Plain(Raw),
    /// Compressor, its output buffer, and the length of the chunks and checksums in it.
    Compressed(ChunkCompressor, Vec<u8>, usize),
}

struct Ordered {
    next: u64,
    waiting: BTreeMap<u64, Result<Stored>>,
    /// `None` while a thread is writing.
    tail: Option<Box<Tail>>,
    error: Option<Error>,
}

/// State of the thread that writes: the file and the index of its chunks.
struct Tail {
    writer: SequentialWriter,
    info: Option<CompressionInfo>,
    crcs: Vec<u32>,
    digest: Crc32Run,
}

impl DataOutput {
    /// Creates an output that writes to `writer`, compressed according to `params`.
    ///
    /// # Errors
    /// An unsupported codec.
    pub fn new(
        writer: SequentialWriter,
        params: Option<CompressionParams>,
        blocks: Arc<OutputBlocks>,
        queue: WorkerQueue,
        cancelled: Arc<AtomicBool>,
    ) -> Result<DataOutput> {
        let mut chunk = ChunkLengths {
            raw: DEFAULT_CRC_CHUNK_LEN as usize,
            max_stored: u64::from(DEFAULT_CRC_CHUNK_LEN),
        };
        let mut compressors = Vec::new();
        if let Some(params) = &params {
            let compressor = ChunkCompressor::new(params)?;
            chunk.raw = params.chunk_len as usize;
            chunk.max_stored = compressor.max_stored_len(chunk.raw) as u64;
            compressors.push((compressor, Vec::new()));
        }
        let tail = Tail {
            writer,
            info: params.clone().map(CompressionInfo::new),
            crcs: Vec::new(),
            digest: Crc32Run::default(),
        };
        let shared = Arc::new(Shared {
            params,
            cancelled,
            compressors: Mutex::new(compressors),
            ordered: Mutex::new(Ordered {
                next: 0,
                waiting: BTreeMap::new(),
                tail: Some(Box::new(tail)),
                error: None,
            }),
            blocks,
            own: Pending::default(),
            has_failed: AtomicBool::new(false),
            written: AtomicU64::new(0),
            encoded: AtomicU64::new(0),
        });
        Ok(DataOutput {
            shared,
            queue,
            chunk,
            carry: Vec::new(),
            next: 0,
            put: 0,
        })
    }

    /// Uncompressed bytes appended so far.
    pub fn position(&self) -> u64 {
        self.put + self.carry.len() as u64
    }

    /// Length of the blocks that are appended, except for the last: whole chunks, bytes.
    pub fn block_len(&self) -> usize {
        BLOCK_LEN.next_multiple_of(self.chunk.raw)
    }

    /// Returns an empty buffer for the next block; waits while too many blocks are pending.
    ///
    /// # Errors
    /// A failure of an earlier block, or cancellation.
    pub fn take_buffer(&self) -> Result<Vec<u8>> {
        self.shared.blocks.wait(&self.queue);
        self.shared.check()?;
        Ok(self.shared.blocks.take(self.block_len()))
    }

    /// Appends a block, whose buffer is recycled once it has been compressed.
    pub fn append_block(&mut self, block: Vec<u8>) {
        self.append_block_from(block, 0);
    }

    /// As [`DataOutput::append_block`], without the first `from` bytes of the block.
    pub fn append_block_from(&mut self, block: Vec<u8>, from: usize) {
        let chunk = self.chunk.raw;
        let len = block.len() - from;
        let whole = (self.carry.len() + len).saturating_sub(1) / chunk * chunk;
        if whole == 0 {
            self.carry.extend_from_slice(&block[from..]);
            return self.shared.blocks.put(block);
        }
        let missing = match self.carry.len() {
            0 => 0,
            len => chunk - len,
        };
        let start = from + missing;
        self.carry.extend_from_slice(&block[from..start]);
        let end = start + whole - self.carry.len();
        let mut carry = Vec::with_capacity(chunk);
        carry.extend_from_slice(&block[end..]);
        let head = std::mem::replace(&mut self.carry, carry);
        self.put(Raw {
            head,
            block,
            of_block: start..end,
        });
    }

    /// Appends a copy of these bytes.
    pub fn append(&mut self, bytes: &[u8]) {
        let mut block = self.shared.blocks.take(bytes.len());
        block.extend_from_slice(bytes);
        self.append_block(block);
    }

    fn put(&mut self, raw: Raw) {
        self.put += raw.len() as u64;
        self.shared.blocks.begin();
        self.shared.own.begin();
        let delivery = Delivery {
            shared: Arc::clone(&self.shared),
            number: self.next,
            is_done: false,
        };
        self.next += 1;
        self.queue.submit(Box::new(move || {
            let stored = delivery.shared.encode(raw);
            delivery.deliver(stored);
        }));
    }

    /// Whether the file, with `more` bytes appended, would exceed `limit` bytes on disk. Chunks that are
    /// followed by other bytes count, or all bytes if there is no compression, so that the result depends
    /// only on the data. `None` if it depends on the length of these bytes or of blocks that are still being
    /// compressed: the caller must append them and call [`exceeds`](DataOutput::exceeds).
    ///
    /// Source: `CompressedSequentialWriter.getEstimatedOnDiskBytesWritten`,
    /// `BufferedDataOutputStreamPlus.write`, `MaxSSTableSizeWriter.shouldSwitchWriterInCurrentLocation`.
    pub fn may_exceed(&self, more: u64, limit: u64) -> Option<bool> {
        if self.shared.params.is_none() {
            return Some(self.position() + more > limit);
        }
        // In this order a block written concurrently is counted twice rather than omitted.
        let encoded = self.shared.encoded.load(Ordering::Acquire);
        let written = self.shared.written.load(Ordering::Relaxed);
        let chunk = self.chunk.raw as u64;
        let open = self.position() + more - encoded;
        let most = written.saturating_add((open / chunk + 1).saturating_mul(self.chunk.max_stored));
        match (most <= limit, written > limit) {
            (true, _) => Some(false),
            (_, true) => Some(true),
            (false, false) => None,
        }
    }

    /// As [`may_exceed`](DataOutput::may_exceed), for the appended bytes. Waits for blocks being compressed
    /// if the result depends on them.
    ///
    /// # Errors
    /// The first failure of any block, or cancellation.
    pub fn exceeds(&self, limit: u64) -> Result<bool> {
        if let Some(answer) = self.may_exceed(0, limit) {
            return Ok(answer);
        }
        self.shared.own.wait_for_less(1, &self.queue);
        self.shared.check()?;
        Ok(self.shared.written.load(Ordering::Relaxed) > limit)
    }

    /// Returns the first failure of any block, or cancellation.
    ///
    /// # Errors
    /// As above.
    pub fn check(&self) -> Result<()> {
        self.shared.check()
    }

    /// Waits for all blocks, then syncs and closes the file.
    ///
    /// # Errors
    /// The first failure of any block.
    pub fn finish(mut self) -> Result<FinishedData> {
        let head = std::mem::take(&mut self.carry);
        if !head.is_empty() {
            self.put(Raw {
                head,
                block: Vec::new(),
                of_block: 0..0,
            });
        }
        self.shared.own.wait_for_less(1, &self.queue);
        let mut ordered = lock(&self.shared.ordered);
        if self.shared.has_failed.load(Ordering::Acquire) {
            return Err(ordered.error.take().unwrap_or_else(lost));
        }
        let mut tail = ordered.tail.take().ok_or_else(lost)?;
        drop(ordered);
        self.shared.end_with_empty_chunk(&mut tail)?;
        let file = tail.writer.finish()?;
        let crc_file = match self.shared.params {
            Some(_) => None,
            None => Some(CrcFile {
                chunk_len: DEFAULT_CRC_CHUNK_LEN,
                crcs: tail.crcs,
            }),
        };
        Ok(FinishedData {
            file,
            digest: tail.digest.value(),
            compression_info: tail.info,
            crc_file,
        })
    }
}

fn lost() -> Error {
    Error::internal("a block of Data.db was dropped")
}

fn panicked() -> Error {
    Error::internal("panic while a block of Data.db was written (reported on stderr)")
}

/// Delivers one block exactly once: as a failure if its task never ran.
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
    /// Returns the first failure of any block, or cancellation.
    fn check(&self) -> Result<()> {
        if self.cancelled.load(Ordering::Relaxed) {
            return Err(Error::Cancelled);
        }
        if !self.has_failed.load(Ordering::Acquire) {
            return Ok(());
        }
        Err(lock(&self.ordered).error.take().unwrap_or_else(lost))
    }

    fn encode(&self, raw: Raw) -> Result<Stored> {
        if self.cancelled.load(Ordering::Relaxed) {
            return Err(Error::Cancelled);
        }
        let mut digest = Crc32Run::default();
        let raw_len = raw.len();
        let Some(params) = &self.params else {
            let mut crcs = Vec::new();
            for chunk in raw
                .parts()
                .iter()
                .flat_map(|part| part.chunks(DEFAULT_CRC_CHUNK_LEN as usize))
            {
                let crc = crc32(chunk);
                digest.append(crc, chunk.len() as u64);
                crcs.push(crc);
            }
            return Ok(Stored {
                raw_len,
                bytes: StoredBytes::Plain(raw),
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
        let chunk_len = params.chunk_len as usize;
        let mut chunks = Vec::with_capacity(raw_len / chunk_len + 1);
        let mut len = 0;
        for chunk in raw.parts().iter().flat_map(|part| part.chunks(chunk_len)) {
            // The content left by an earlier block is overwritten without being cleared.
            let room = len + compressor.max_stored_len(chunk.len());
            if out.len() < room {
                out.resize(room, 0);
            }
            let lengths = compressor.compress_into(chunk, &mut out[len..])?;
            chunks.push((chunk.len() as u32, lengths.stored_len));
            digest.append_chunk(lengths.crc, u64::from(lengths.payload_len));
            len += lengths.stored_len as usize;
        }
        self.blocks.put(raw.block);
        Ok(Stored {
            raw_len,
            bytes: StoredBytes::Compressed(compressor, out, len),
            chunks,
            crcs: Vec::new(),
            digest,
        })
    }

    /// Appends an empty chunk if the content ends at a chunk boundary. Cassandra's extended verifier seeks to
    /// the end of the content, which must be in a chunk (`RandomAccessReader.seek`,
    /// `CompressionMetadata.chunkFor`); outputs of a node's compactions always end in such a chunk.
    fn end_with_empty_chunk(&self, tail: &mut Tail) -> Result<()> {
        let (Some(params), Some(info)) = (&self.params, &mut tail.info) else {
            return Ok(());
        };
        let ends_with_chunk = info.data_len.is_multiple_of(u64::from(params.chunk_len));
        if info.data_len == 0 || !ends_with_chunk {
            return Ok(());
        }
        let mut stored = Vec::new();
        let lengths = ChunkCompressor::new(params)?.compress(&[], &mut stored)?;
        tail.writer.write_all(&stored)?;
        info.push_chunk(0, lengths.stored_len);
        tail.digest
            .append_chunk(lengths.crc, u64::from(lengths.payload_len));
        self.written
            .fetch_add(stored.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    fn deliver(&self, number: u64, stored: Result<Stored>) {
        let mut ordered = lock(&self.ordered);
        ordered.waiting.insert(number, stored);
        // The thread that is writing will write it.
        let Some(mut tail) = ordered.tail.take() else {
            return;
        };
        loop {
            let next = ordered.next;
            let Some(stored) = ordered.waiting.remove(&next) else {
                ordered.tail = Some(tail);
                return;
            };
            ordered.next += 1;
            drop(ordered);
            let written = stored.and_then(|stored| {
                // Other threads wait for every block, including one whose write panicked.
                let write = || self.write(&mut tail, stored);
                catch_unwind(AssertUnwindSafe(write)).unwrap_or_else(|_| Err(panicked()))
            });
            ordered = lock(&self.ordered);
            if let Err(error) = written {
                ordered.error.get_or_insert(error);
                self.has_failed.store(true, Ordering::Release);
            }
            if !ordered.waiting.contains_key(&ordered.next) {
                // Before waiting threads see that no block is pending.
                ordered.tail = Some(tail);
                drop(ordered);
                self.blocks.end();
                return self.own.end();
            }
            drop(ordered);
            self.blocks.end();
            self.own.end();
            ordered = lock(&self.ordered);
        }
    }

    fn write(&self, tail: &mut Tail, stored: Stored) -> Result<()> {
        let has_failed = self.has_failed.load(Ordering::Relaxed);
        match stored.bytes {
            _ if has_failed => {}
            StoredBytes::Plain(raw) => {
                for part in raw.parts() {
                    tail.writer.write_all(part)?;
                    self.written.fetch_add(part.len() as u64, Ordering::Relaxed);
                }
                self.blocks.put(raw.block);
            }
            StoredBytes::Compressed(compressor, out, len) => {
                tail.writer.write_all(&out[..len])?;
                self.written.fetch_add(len as u64, Ordering::Relaxed);
                lock(&self.compressors).push((compressor, out));
            }
        }
        self.encoded
            .fetch_add(stored.raw_len as u64, Ordering::Release);
        tail.digest.append_run(&stored.digest);
        tail.crcs.extend_from_slice(&stored.crcs);
        if let Some(info) = &mut tail.info {
            for (raw_len, stored_len) in stored.chunks {
                info.push_chunk(raw_len, stored_len);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use compactor_io::{Io, IoOptions, WriteMode, WriterOptions};
    use compactor_sstable::compression::codec::Codec;

    use super::*;

    /// An output in a directory of its own.
    fn output(codec: Option<Codec>) -> (tempfile::TempDir, DataOutput) {
        let temp = tempfile::tempdir().unwrap();
        let io = Io::new(IoOptions::default()).unwrap();
        let path = temp.path().join("nb-1-big-Data.db");
        let options = WriterOptions::default();
        let writer = io.create(&path, WriteMode::Buffered, options).unwrap();
        let params = codec.map(|codec| CompressionParams::new(codec, 16 << 10));
        let (blocks, queue) = (Arc::new(OutputBlocks::new(1)), WorkerQueue::default());
        let output = DataOutput::new(writer, params, blocks, queue, Arc::default()).unwrap();
        (temp, output)
    }

    /// Outputs that end inside a block append parts of it.
    #[test]
    fn parts_of_blocks_do_not_add_buffers() {
        let (_temp, mut output) = output(Some(Codec::Lz4));
        let blocks = Arc::clone(&output.shared.blocks);
        for _ in 0..50 {
            let mut block = output.take_buffer().unwrap();
            block.resize(output.block_len(), 7);
            output.append(&block[..100]);
            output.append_block_from(block, 100);
        }
        output.finish().unwrap();
        let spare = lock(&blocks.spare).len();
        assert!(spare <= 6, "{spare}");
    }

    /// A merge that learned of the failure only at its end would fill the disk in vain.
    #[test]
    fn taking_a_buffer_reports_an_earlier_failure() {
        let (_temp, mut output) = output(None);
        output.take_buffer().unwrap();
        output.shared.blocks.begin();
        output.shared.own.begin();
        drop(Delivery {
            shared: Arc::clone(&output.shared),
            number: 0,
            is_done: false,
        });
        assert!(output.take_buffer().is_err());
        // The file is incomplete, whether or not the error has been taken.
        output.next += 1;
        output.append_block(vec![0]);
        assert!(output.finish().is_err());
    }

    #[test]
    fn a_panic_in_a_write_fails_the_merge() {
        let (_temp, output) = output(Some(Codec::Lz4));
        output.shared.blocks.begin();
        output.shared.own.begin();
        let compressor = lock(&output.shared.compressors).pop().unwrap().0;
        let stored = Stored {
            raw_len: 1,
            // More than the buffer contains.
            bytes: StoredBytes::Compressed(compressor, Vec::new(), 1),
            chunks: Vec::new(),
            crcs: Vec::new(),
            digest: Crc32Run::default(),
        };
        output.shared.deliver(0, Ok(stored));
        let error = output.finish().unwrap_err().to_string();
        assert!(error.contains("panic"), "{error}");
    }
}
