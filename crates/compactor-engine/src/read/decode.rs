//! Readahead of one input: blocks are read and decoded before they are needed.
//!
//! A block ([`StoredBlocks`]) is decoded by the thread that needs it next, which then has it in its L1 or L2 cache,
//! or ahead of time by a thread that is otherwise idle. Reads may complete in any order; blocks are returned
//! in file order.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::Thread;

use compactor_io::{Extent, InputFile, IoError, lock};
use compactor_sstable::compression::crc32_run::Crc32Run;

use crate::error::{Error, Result};
use crate::read::encoding::Encoding;
use crate::read::rate_limiter::RateLimiter;
use crate::read::reading::Reading;
use crate::read::stored_blocks::{Decoded, Recycled, StoredBlocks};
use crate::read::window::{Block, BlockSource};
use crate::read::workers::WorkerQueue;

#[derive(Debug)]
struct Shared {
    file: InputFile,
    queue: WorkerQueue,
    blocks: StoredBlocks,
    /// `DecodeOptions::decoded`.
    decoded: usize,
    cancelled: Arc<AtomicBool>,
    slots: Mutex<Slots>,
}

/// Blocks that were requested and not yet consumed.
#[derive(Debug, Default)]
struct Slots {
    /// The first is block `next_out`.
    slots: VecDeque<Slot>,
    /// Nothing is decoded ahead until a consumer has begun to take blocks, since that takes memory.
    next_out: u64,
    /// Thread that waits for the first block.
    waiter: Option<Thread>,
    /// Ticket of the queued task that decodes a block ahead, if there is one.
    offered: Option<u64>,
}

/// State of a block.
#[derive(Debug)]
enum Slot {
    Reading,
    /// Ready to be decoded by any thread. Blocks of one request share the bytes.
    Stored(Arc<Extent>),
    Decoding,
    Decoded(Result<Decoded>),
}

/// Maximum number of blocks read with one request.
pub(crate) const BLOCKS_PER_REQUEST: usize = 8;

/// [`BlockSource`] over one `Data.db`.
#[derive(Debug)]
pub struct DecodedBlocks {
    shared: Arc<Shared>,
    /// CRC32 of the stored bytes of the blocks returned so far.
    digest: Crc32Run,
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
        encoding: impl Into<Arc<Encoding>>,
        reading: Reading,
    ) -> DecodedBlocks {
        let encoding = encoding.into();
        let range = 0..encoding.data_len();
        DecodedBlocks::start_range(file, encoding, Arc::default(), range, reading)
    }

    /// Starts reading `range` of the uncompressed bytes of `file` ahead. The first block begins with the unit
    /// that contains the start of the range ([`DecodedBlocks::lead_len`]); the last ends with the range.
    pub(crate) fn start_range(
        file: InputFile,
        encoding: Arc<Encoding>,
        recycled: Arc<Recycled>,
        range: Range<u64>,
        reading: Reading,
    ) -> DecodedBlocks {
        let options = reading.decode;
        let stored = StoredBlocks::new(encoding, recycled, range, options);
        let mut blocks = DecodedBlocks {
            block_count: stored.count(),
            shared: Arc::new(Shared {
                file,
                queue: reading.queue,
                blocks: stored,
                decoded: options.decoded,
                cancelled: reading.cancelled,
                slots: Mutex::default(),
            }),
            digest: Crc32Run::default(),
            next_request: 0,
            next_out: 0,
            depth: options.depth.max(1) as u64,
            limiter: reading.limiter,
        };
        blocks.request_ahead();
        blocks
    }

    /// CRC32 of the stored bytes so far: of the whole file once there are no more blocks.
    pub fn digest(&self) -> u32 {
        self.digest.value()
    }

    /// As [`DecodedBlocks::digest`], to be combined with the digests of the previous and following ranges.
    /// The stored bytes of a chunk belong to the range that contains the first of its content.
    pub(crate) fn digest_of_range(&self) -> &Crc32Run {
        &self.digest
    }

    /// Bytes before the range in the first block.
    pub(crate) fn lead_len(&self) -> usize {
        self.shared.blocks.lead_len()
    }

    /// Requests up to [`BLOCKS_PER_REQUEST`] blocks at a time, but at most half of the readahead: longer
    /// requests use the disk better.
    fn request_ahead(&mut self) {
        let end = self.block_count.min(self.next_out + self.depth);
        let per_request = (self.depth / 2).clamp(1, BLOCKS_PER_REQUEST as u64);
        while self.next_request < end {
            let request_end = self.next_request + per_request;
            if request_end > end && end < self.block_count {
                return;
            }
            let blocks = self.next_request..request_end.min(end);
            self.next_request = blocks.end;
            self.request(blocks);
        }
    }

    fn request(&self, blocks: Range<u64>) {
        let slots = blocks.clone().map(|_| Slot::Reading);
        lock(&self.shared.slots).slots.extend(slots);
        let answer = Answer {
            shared: Arc::clone(&self.shared),
            blocks: blocks.clone(),
        };
        let (first, last) = (blocks.start, blocks.end - 1);
        let ranges = self.shared.blocks.stored_range(first);
        let ranges = ranges.and_then(|first| Ok((first, self.shared.blocks.stored_range(last)?)));
        match ranges {
            Ok(((offset, _), (last_offset, last_len))) => self.shared.file.submit_read(
                offset,
                (last_offset - offset) as usize + last_len,
                Box::new(move |read: Result<Extent, IoError>| match read {
                    Ok(extent) => answer.stored(extent),
                    Err(error) => answer.decoded(Err(error.into())),
                }),
            ),
            Err(error) => answer.decoded(Err(error)),
        }
    }
}

/// Delivers exactly one result for each block: an error if the request or the decoding task is dropped.
struct Answer {
    shared: Arc<Shared>,
    blocks: Range<u64>,
}

impl Answer {
    fn stored(mut self, extent: Extent) {
        let extent = Arc::new(extent);
        for block in std::mem::take(&mut self.blocks) {
            let slot = Slot::Stored(Arc::clone(&extent));
            self.shared.put(block, slot);
        }
    }

    /// Delivers the first of the blocks. After an error, no consumer reads further.
    fn decoded(mut self, decoded: Result<Decoded>) {
        let first = self.blocks.next();
        if let Some(block) = first {
            self.shared.put(block, Slot::Decoded(decoded));
        }
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        for block in std::mem::take(&mut self.blocks) {
            let lost = Error::internal("a read or decode task was dropped");
            self.shared.put(block, Slot::Decoded(Err(lost)));
        }
    }
}

impl Shared {
    /// Queues a task that decodes a block ahead, if there is one and none is queued.
    fn offer(self: &Arc<Self>, slots: &mut Slots) {
        let is_stored = |slot: &Slot| matches!(slot, Slot::Stored(_));
        let mut ahead = slots.slots.iter().take(self.decoded);
        if slots.next_out > 0 && slots.offered.is_none() && ahead.any(is_stored) {
            let shared = Arc::clone(self);
            let task = move || shared.decode_next();
            slots.offered = Some(self.queue.offer(Box::new(task)));
        }
    }

    /// Decodes the first block that was read and is not being decoded. Another task follows if there are more.
    fn decode_next(self: Arc<Self>) {
        let mut slots = lock(&self.slots);
        slots.offered = None;
        let next_out = slots.next_out;
        // There are no slots once the reader has been dropped.
        let mut places = (0u64..).zip(slots.slots.iter_mut().take(self.decoded));
        let Some((place, slot)) = places.find(|(_, slot)| matches!(slot, Slot::Stored(_))) else {
            return;
        };
        let index = next_out + place;
        let Slot::Stored(extent) = std::mem::replace(slot, Slot::Decoding) else {
            return;
        };
        drop(places);
        self.offer(&mut slots);
        drop(slots);
        let answer = Answer {
            shared: Arc::clone(&self),
            blocks: index..index + 1,
        };
        answer.decoded(self.decode(index, &extent));
    }

    /// Updates the state of a block. A block that was read is offered to other threads, unless a thread waits
    /// for it.
    fn put(self: &Arc<Self>, index: u64, slot: Slot) {
        let is_stored = matches!(slot, Slot::Stored(_));
        let mut slots = lock(&self.slots);
        // The reader has been dropped.
        let Some(place) = index.checked_sub(slots.next_out) else {
            return;
        };
        match slots.slots.get_mut(place as usize) {
            Some(there) => *there = slot,
            None => return,
        }
        let waiter = match place {
            0 => slots.waiter.take(),
            _ => None,
        };
        if is_stored && waiter.is_none() {
            self.offer(&mut slots);
        }
        drop(slots);
        if let Some(thread) = waiter {
            thread.unpark();
        }
    }

    /// Decodes a block from the bytes of `extent`.
    fn decode(&self, index: u64, extent: &Extent) -> Result<Decoded> {
        if self.cancelled.load(Ordering::Relaxed) {
            return Err(Error::Cancelled);
        }
        self.blocks.decode(index, extent, self.file.path())
    }
}

impl DecodedBlocks {
    /// Waits for the next block and takes it, decoded or still to be decoded.
    fn front(&self) -> Result<Slot> {
        let shared = &self.shared;
        self.shared.queue.wait_for(|| {
            if shared.cancelled.load(Ordering::Relaxed) {
                return Some(Err(Error::Cancelled));
            }
            let mut slots = lock(&shared.slots);
            match slots.slots.front() {
                Some(Slot::Reading | Slot::Decoding) => {
                    slots.waiter = Some(std::thread::current());
                    return None;
                }
                Some(Slot::Stored(_) | Slot::Decoded(_)) | None => {}
            }
            slots.waiter = None;
            // From now on other threads may decode the following blocks.
            slots.next_out += 1;
            let front = slots.slots.pop_front();
            shared.offer(&mut slots);
            let missing = || Error::internal("a block that was not requested");
            Some(front.ok_or_else(missing))
        })
    }
}

impl BlockSource for DecodedBlocks {
    fn next_block(&mut self) -> Result<Option<Block>> {
        if self.next_out == self.block_count {
            return Ok(None);
        }
        if self.shared.cancelled.load(Ordering::Relaxed) {
            return Err(Error::Cancelled);
        }
        // No-op where blocks were recycled.
        self.request_ahead();
        let Decoded { block, stored } = match self.front()? {
            Slot::Decoded(decoded) => decoded?,
            Slot::Stored(extent) => self.shared.decode(self.next_out, &extent)?,
            Slot::Reading | Slot::Decoding => {
                return Err(Error::internal("a block that is not ready"));
            }
        };
        if let Some(limiter) = &self.limiter {
            let (_, len) = self.shared.blocks.stored_range(self.next_out)?;
            limiter.take(len as u64, &self.shared.cancelled)?;
        }
        self.next_out += 1;
        self.digest.append_run(&stored);
        Ok(Some(block))
    }

    /// The following block is decoded into it, so that no more blocks are allocated than are ahead and in
    /// use.
    fn recycle(&mut self, block: Block) {
        self.shared.blocks.recycle(block);
        self.request_ahead();
    }

    fn total_len(&self) -> u64 {
        self.shared.blocks.end()
    }
}

impl Drop for DecodedBlocks {
    /// Leaves reads in flight to complete; their buffers are freed then.
    fn drop(&mut self) {
        let mut slots = lock(&self.shared.slots);
        slots.slots.clear();
        slots.next_out = u64::MAX;
        let offered = slots.offered.take();
        drop(slots);
        if let Some(ticket) = offered {
            self.shared.queue.withdraw(ticket);
        }
        // Other readers may be at other ranges; dropping the last handle of the file evicts its pages.
        if self.shared.blocks.is_whole_file() {
            self.shared.file.evict();
        }
    }
}

#[cfg(test)]
mod tests {
    use compactor_io::{Io, IoOptions, ReadMode};
    use compactor_sstable::compression::chunk::{ChunkCompressor, ChunkDecompressor};
    use compactor_sstable::compression::codec::Codec;
    use compactor_sstable::compression::crc32;
    use compactor_sstable::compression::info::{CompressionInfo, CompressionParams};

    use super::*;
    use crate::read::reading::DecodeOptions;
    use crate::read::workers::Workers;

    const CHUNK_LEN: u32 = 4096;

    fn reading(
        workers: &Workers,
        block_len: usize,
        (depth, decoded): (usize, usize),
        headroom: usize,
    ) -> Reading {
        Reading {
            decode: DecodeOptions {
                block_len,
                depth,
                decoded,
                headroom,
            },
            queue: workers.queue(),
            cancelled: Arc::default(),
            limiter: None,
        }
    }

    /// Content and checksum of `range`, read in blocks of `chunks` chunks.
    fn read(
        file: &InputFile,
        encoding: &Arc<Encoding>,
        range: Range<u64>,
        chunks: usize,
        workers: &Workers,
    ) -> (Vec<u8>, Crc32Run) {
        let mut blocks = DecodedBlocks::start_range(
            file.clone(),
            Arc::clone(encoding),
            Arc::default(),
            range,
            reading(workers, chunks * CHUNK_LEN as usize, (2, 1), 100),
        );
        let lead_len = blocks.lead_len();
        let mut content = Vec::new();
        while let Some(block) = blocks.next_block().unwrap() {
            content.extend_from_slice(block.data());
        }
        content.drain(..lead_len.min(content.len()));
        (content, *blocks.digest_of_range())
    }

    /// SSTables that Cassandra opened early end in an empty chunk.
    #[test]
    fn empty_chunks_are_in_the_digest() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("mc-1-big-Data.db");
        let workers = Workers::start(2).unwrap();
        let io = Io::new(IoOptions::default()).unwrap();
        let codecs = [
            Codec::Lz4,
            Codec::Snappy,
            Codec::Deflate,
            Codec::Zstd { level: 3 },
            Codec::Noop,
        ];
        let lengths = [1, 4096, 3 * 4096, 3 * 4096 + 17];
        for (codec, data_len) in codecs.iter().flat_map(|c| lengths.map(|len| (*c, len))) {
            for empty_chunks in 0..3 {
                let params = CompressionParams::new(codec, CHUNK_LEN);
                let mut compressor = ChunkCompressor::new(&params).unwrap();
                let decompressor = ChunkDecompressor::new(&params).unwrap();
                let mut info = CompressionInfo::new(params);
                let content: Vec<u8> = (0..data_len).map(|i| (i * i / 7) as u8).collect();
                let mut stored = Vec::new();
                for raw in content.chunks(CHUNK_LEN as usize) {
                    let lengths = compressor.compress(raw, &mut stored).unwrap();
                    info.push_chunk(raw.len() as u32, lengths.stored_len);
                }
                for _ in 0..empty_chunks {
                    let lengths = compressor.compress(&[], &mut stored).unwrap();
                    info.push_chunk(0, lengths.stored_len);
                }
                std::fs::write(&path, &stored).unwrap();
                let file = io.open(&path, ReadMode::Buffered).unwrap();
                let encoding = Arc::new(Encoding::Compressed { info, decompressor });

                for chunks in 1..=5 {
                    let case = format!("{codec:?}, {data_len}, {empty_chunks}, {chunks}");
                    let data_len = data_len as u64;
                    let (found, digest) = read(&file, &encoding, 0..data_len, chunks, &workers);
                    assert_eq!(found, content, "{case}");
                    assert_eq!(digest.value(), crc32(&stored), "{case}");
                    for split in [0, 1, 4095, 4096, 8192, 12_287, 12_288, 12_300, data_len] {
                        let split = split.min(data_len);
                        let (mut found, mut digest) =
                            read(&file, &encoding, 0..split, chunks, &workers);
                        let (rest, rest_digest) =
                            read(&file, &encoding, split..data_len, chunks, &workers);
                        found.extend(rest);
                        digest.append_run(&rest_digest);
                        assert_eq!(found, content, "{case}, in two at {split}");
                        assert_eq!(digest.value(), crc32(&stored), "{case}, in two at {split}");
                    }
                }
            }
        }
    }

    /// A window uses one block while the following ones are read; more memory would be wasted, thousands of
    /// times over with thousands of inputs.
    #[test]
    fn no_more_blocks_are_made_than_are_ahead_and_in_use() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("nb-1-big-Data.db");
        let content: Vec<u8> = (0..100 * CHUNK_LEN).map(|i| (i / 5) as u8).collect();
        std::fs::write(&path, &content).unwrap();
        let io = Io::new(IoOptions::default()).unwrap();
        let workers = Workers::start(2).unwrap();
        let all_decoded = [1, 2, 3, 4, 5, 8, 16].map(|depth| (depth, depth));
        for (depth, decoded) in all_decoded.into_iter().chain([(4, 1), (16, 2)]) {
            let encoding = Encoding::Plain {
                crc: None,
                len: content.len() as u64,
            };
            let mut blocks = DecodedBlocks::start(
                io.open(&path, ReadMode::Buffered).unwrap(),
                encoding,
                reading(&workers, CHUNK_LEN as usize, (depth, decoded), 64),
            );
            let mut in_use = Block::default();
            let mut made = std::collections::BTreeSet::new();
            let mut found = Vec::new();
            let mut ahead = std::collections::BTreeSet::new();
            while let Some(block) = blocks.next_block().unwrap() {
                made.insert(block.bytes.as_ptr());
                found.extend_from_slice(block.data());
                blocks.recycle(std::mem::replace(&mut in_use, block));
                if blocks.next_request < blocks.block_count {
                    ahead.insert((blocks.next_request - blocks.next_out) as usize);
                }
            }
            // The next half is requested when the first half has been consumed.
            let least = depth + 1 - (depth / 2).clamp(1, BLOCKS_PER_REQUEST);
            assert!(
                ahead.iter().eq(&(least..=depth).collect::<Vec<_>>()),
                "{depth}: {ahead:?}"
            );
            // The next block is taken before the current one is recycled.
            let most = (decoded + 2).min(depth + 1);
            assert!(made.len() <= most, "{} of {depth}, {decoded}", made.len());
            assert_eq!(found, content);
        }
    }
}
