//! Decoded blocks of one input: read ahead, checked and decompressed by other threads.
//!
//! A block is a run of whole chunks. Each is read with one request that covers exactly its stored
//! bytes, so a worker can decode it alone, and blocks of one file decode in parallel. Completions
//! may arrive in any order; blocks leave in file order.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use compactor_io::{Extent, InputFile, IoError};
use compactor_sstable::Component;
use compactor_sstable::compression::chunk::ChunkDecompressor;
use compactor_sstable::compression::crc_file::CrcFile;
use compactor_sstable::compression::info::{CompressionInfo, StoredChunk};
use crc32fast::Hasher;
use crossbeam_channel::{Receiver, Sender, unbounded};

use crate::error::{Error, Result};
use crate::rate_limiter::RateLimiter;
use crate::window::{Block, BlockSource, HEADROOM};
use crate::workers::WorkerQueue;

/// How stored bytes become uncompressed ones.
#[derive(Debug)]
pub enum Encoding {
    /// Chunks, each with its checksum.
    Compressed {
        /// Where chunks lie.
        info: CompressionInfo,
        /// Decoder for the file's codec.
        decompressor: ChunkDecompressor,
    },
    /// Plain bytes, with the checksums of `CRC.db` where that component exists.
    Plain {
        /// Checksums, one per chunk of `chunk_len` bytes.
        crc: Option<CrcFile>,
        /// Length of `Data.db`.
        len: u64,
    },
}

impl Encoding {
    /// Uncompressed length of the file.
    pub fn data_len(&self) -> u64 {
        match self {
            Encoding::Compressed { info, .. } => info.data_len,
            Encoding::Plain { len, .. } => *len,
        }
    }

    /// Uncompressed bytes that are checked and decoded together.
    fn unit(&self) -> u64 {
        match self {
            Encoding::Compressed { info, .. } => u64::from(info.params.chunk_len),
            Encoding::Plain { crc: Some(crc), .. } => u64::from(crc.chunk_len),
            Encoding::Plain { crc: None, .. } => 4096,
        }
    }
}

/// How far and in what pieces to read ahead.
#[derive(Clone, Copy, Debug)]
pub struct DecodeOptions {
    /// Uncompressed bytes per block, rounded to whole chunks (at least one).
    pub block_len: usize,
    /// Blocks being read, decoded or waiting, per input (at least one).
    pub depth: usize,
}

#[derive(Debug)]
struct Shared {
    file: InputFile,
    encoding: Encoding,
    units_per_block: u64,
    cancelled: Arc<AtomicBool>,
    stored_bytes: AtomicU64,
    /// With the working memory that they made: as many as workers were at it at once.
    decompressors: Mutex<Vec<ChunkDecompressor>>,
}

/// A block, and the checksum of what was stored of it.
#[derive(Debug)]
struct Decoded {
    block: Block,
    stored: Hasher,
}

/// [`BlockSource`] over one `Data.db`.
#[derive(Debug)]
pub struct DecodedBlocks {
    shared: Arc<Shared>,
    queue: WorkerQueue,
    sender: Sender<(u64, Result<Decoded>)>,
    receiver: Receiver<(u64, Result<Decoded>)>,
    /// Blocks that arrived early; the front is block `next_out`.
    waiting: VecDeque<Option<Result<Decoded>>>,
    /// CRC32 of the stored bytes of the blocks that left.
    digest: Hasher,
    spare: Vec<Block>,
    block_count: u64,
    next_request: u64,
    next_out: u64,
    depth: u64,
    limiter: Option<Arc<RateLimiter>>,
}

impl DecodedBlocks {
    /// Starts reading `file` ahead.
    pub fn start(
        file: InputFile,
        encoding: Encoding,
        options: DecodeOptions,
        queue: WorkerQueue,
        cancelled: Arc<AtomicBool>,
    ) -> DecodedBlocks {
        let unit = encoding.unit().max(1);
        let units_per_block = (options.block_len as u64 / unit).max(1);
        let block_count = encoding.data_len().div_ceil(unit * units_per_block);
        let (sender, receiver) = unbounded();
        let mut blocks = DecodedBlocks {
            shared: Arc::new(Shared {
                file,
                encoding,
                units_per_block,
                cancelled,
                stored_bytes: AtomicU64::new(0),
                decompressors: Mutex::new(Vec::new()),
            }),
            queue,
            sender,
            receiver,
            waiting: VecDeque::new(),
            digest: Hasher::new(),
            spare: Vec::new(),
            block_count,
            next_request: 0,
            next_out: 0,
            depth: options.depth.max(1) as u64,
            limiter: None,
        };
        blocks.request_ahead();
        blocks
    }

    /// Lets no more through than `limiter` allows. What is read ahead is at most the usual number of
    /// blocks.
    #[must_use]
    pub fn limited_by(mut self, limiter: Option<Arc<RateLimiter>>) -> DecodedBlocks {
        self.limiter = limiter;
        self
    }

    /// Bytes read from the file so far.
    pub fn stored_bytes_read(&self) -> u64 {
        self.shared.stored_bytes.load(Ordering::Relaxed)
    }

    /// CRC32 of the stored bytes so far: of the whole file once there is no next block.
    pub fn digest(&self) -> u32 {
        self.digest.clone().finalize()
    }

    fn request_ahead(&mut self) {
        while self.next_request < self.block_count && self.next_request < self.next_out + self.depth
        {
            let index = self.next_request;
            self.next_request += 1;
            let block = self.spare.pop().unwrap_or_default();
            self.request(index, block);
        }
    }

    fn request(&self, index: u64, block: Block) {
        let shared = Arc::clone(&self.shared);
        let reply = Reply {
            index,
            sender: Some(self.sender.clone()),
        };
        let queue = self.queue.clone();
        let (offset, len) = match self.shared.stored_range(index) {
            Ok(range) => range,
            Err(error) => return reply.send(Err(error)),
        };
        self.shared.file.submit_read(
            offset,
            len,
            Box::new(move |read: Result<Extent, IoError>| match read {
                Ok(extent) => queue.submit(Box::new(move || {
                    shared
                        .stored_bytes
                        .fetch_add(extent.len() as u64, Ordering::Relaxed);
                    let mut stored = Hasher::new();
                    stored.update(&extent);
                    let decoded = shared.decode(index, offset, &extent, block);
                    drop(extent);
                    reply.send(decoded.map(|block| Decoded { block, stored }));
                })),
                Err(error) => reply.send(Err(error.into())),
            }),
        );
    }
}

/// Sends exactly one answer: if the task is dropped unrun, an error.
struct Reply {
    index: u64,
    sender: Option<Sender<(u64, Result<Decoded>)>>,
}

impl Reply {
    fn send(mut self, result: Result<Decoded>) {
        if let Some(sender) = self.sender.take() {
            // The receiver is gone when the job has ended early.
            let _ = sender.send((self.index, result));
        }
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        if let Some(sender) = self.sender.take() {
            let lost = Error::Internal("a read or decode task was dropped".to_owned());
            let _ = sender.send((self.index, Err(lost)));
        }
    }
}

impl Shared {
    /// File offset and length of the stored bytes of block `index`.
    fn stored_range(&self, index: u64) -> Result<(u64, usize)> {
        let unit = self.encoding.unit();
        let first = index * self.units_per_block;
        let (start, end) = match &self.encoding {
            Encoding::Compressed { info, .. } => {
                let last = (first + self.units_per_block).min(info.chunk_count() as u64) - 1;
                let (first, last) = (self.chunk(info, first)?, self.chunk(info, last)?);
                (first.offset, last.offset + last.stored_len)
            }
            Encoding::Plain { len, .. } => (
                first * unit,
                ((first + self.units_per_block) * unit).min(*len),
            ),
        };
        let len = usize::try_from(end - start)
            .map_err(|_| Error::Internal(format!("a block of {} stored bytes", end - start)))?;
        Ok((start, len))
    }

    fn chunk(&self, info: &CompressionInfo, index: u64) -> Result<StoredChunk> {
        info.chunk(index as usize)
            .ok_or_else(|| Error::Internal(format!("chunk {index} beyond the last")))
    }

    fn decode(&self, index: u64, offset: u64, stored: &[u8], mut block: Block) -> Result<Block> {
        if self.cancelled.load(Ordering::Relaxed) {
            return Err(Error::Cancelled);
        }
        let path = self.file.path();
        let first = index * self.units_per_block;
        match &self.encoding {
            Encoding::Compressed { info, decompressor } => {
                let chunk_len = u64::from(info.params.chunk_len);
                let last = (first + self.units_per_block).min(info.chunk_count() as u64);
                let data_end = (last * chunk_len).min(info.data_len);
                prepare(&mut block, (data_end - first * chunk_len) as usize);
                let recycled = self
                    .decompressors
                    .lock()
                    .ok()
                    .and_then(|mut spare| spare.pop());
                let mut decompressor = recycled.unwrap_or_else(|| decompressor.clone());
                let mut out = &mut block.bytes[HEADROOM..];
                for index in first..last {
                    let chunk = self.chunk(info, index)?;
                    let at = (chunk.offset - offset) as usize;
                    let bytes = &stored[at..at + chunk.stored_len as usize];
                    let (target, rest) = out.split_at_mut(chunk.raw_len as usize);
                    decompressor
                        .decompress(bytes, chunk.offset, target)
                        .map_err(|e| e.with_file(path, Component::Data))?;
                    out = rest;
                }
                if let Ok(mut spare) = self.decompressors.lock() {
                    spare.push(decompressor);
                }
            }
            Encoding::Plain { crc, .. } => {
                if let Some(crc) = crc {
                    for (i, chunk) in stored.chunks(crc.chunk_len as usize).enumerate() {
                        crc.check(first as usize + i, chunk)
                            .map_err(|e| e.with_file(path, Component::Data))?;
                    }
                }
                prepare(&mut block, stored.len());
                block.bytes[HEADROOM..].copy_from_slice(stored);
            }
        }
        Ok(block)
    }
}

/// Sizes a recycled block for `data_len` bytes without clearing what will be overwritten.
fn prepare(block: &mut Block, data_len: usize) {
    block.bytes.resize(HEADROOM + data_len, 0);
}

impl BlockSource for DecodedBlocks {
    fn next_block(&mut self) -> Result<Option<Block>> {
        if self.next_out == self.block_count {
            return Ok(None);
        }
        if self.shared.cancelled.load(Ordering::Relaxed) {
            return Err(Error::Cancelled);
        }
        loop {
            if let Some(Some(_)) = self.waiting.front()
                && let Some(Some(result)) = self.waiting.pop_front()
            {
                let taken = self.next_out;
                self.next_out += 1;
                let Decoded { block, stored } = result?;
                if let Some(limiter) = &self.limiter {
                    let (_, len) = self.shared.stored_range(taken)?;
                    limiter.take(len as u64, &self.shared.cancelled);
                }
                self.digest.combine(&stored);
                self.request_ahead();
                return Ok(Some(block));
            }
            let (index, result) = self
                .receiver
                .recv()
                .map_err(|_| Error::Internal("decode workers ended".to_owned()))?;
            let place = (index - self.next_out) as usize;
            while self.waiting.len() <= place {
                self.waiting.push_back(None);
            }
            self.waiting[place] = Some(result);
        }
    }

    fn recycle(&mut self, block: Block) {
        // A window that grew for a long row returns an oversized buffer: let it go.
        let unit = self.shared.encoding.unit() * self.shared.units_per_block;
        if block.bytes.capacity() as u64 <= 2 * (unit + HEADROOM as u64)
            && (self.spare.len() as u64) < self.depth
        {
            self.spare.push(block);
        }
    }

    fn total_len(&self) -> u64 {
        self.shared.encoding.data_len()
    }
}

impl Drop for DecodedBlocks {
    /// Leaves reads in flight to end on their own; what they hold is dropped with them.
    fn drop(&mut self) {
        self.shared.file.evict();
    }
}
