//! `Data.db` as it lies on disk: digest, chunk checksums, and chunks decoded for the cursor.
//!
//! One reading serves all three. Chunks are digested in file order, once; the content is decoded on
//! the way, and when the cursor has to start again behind damage, the chunks in between are still
//! digested and checked.
//!
//! A chunk is decoded where a merge decodes it, in `compactor_sstable::compression`. What goes from chunk to
//! chunk is not the engine's `DecodedBlocks`, which is to stop where the first thing is wrong:
//!
//! - A block of many chunks is sound or an error there. Here what is before a damaged chunk is handed over, and
//!   what is behind it is read on.
//! - Its digest is that of blocks that were decoded. Here it has every stored byte in it, once, also of chunks that
//!   are damaged, are skipped, or are read again from another place.
//! - It reads what `CompressionInfo.db` and the file agree on. Here a codec may be unknown, so that there are only
//!   checksums to check, and chunks may lie behind the end of the file.
//! - It sets memory aside for the content that `CompressionInfo.db` states. Here that is not believed, and memory is
//!   limited by what the stored bytes can become.
//! - It reads ahead of one range from its start. A scrub goes on from any place, and comes back.

use std::ops::Range;

use compactor_engine::Error as EngineError;
use compactor_engine::read::{Block, BlockSource, HEADROOM};
use compactor_io::{InputFile, IoError, ReadMode};
use compactor_sstable::compression::chunk::{ChunkDecompressor, check_crc};
use compactor_sstable::compression::codec::Codec;
use compactor_sstable::compression::crc_file::CrcFile;
use compactor_sstable::compression::info::CompressionInfo;
use compactor_sstable::{Component, Error as FormatError};

use super::finding::{Findings, Place};
use super::stream::ByteStream;

/// Uncompressed bytes that are handed to the cursor together, at least one chunk.
const BLOCK_LEN: usize = 256 << 10;
/// Unit of checking where there are no checksums.
const PLAIN_UNIT: u64 = 64 << 10;
/// Content that memory is set aside for without asking what the stored bytes can become.
const SMALL_CHUNK: u64 = 1 << 20;
/// The most that LZ4 can expand: 255 bytes per byte of a match's length.
const MAX_LZ4_EXPANSION: u64 = 256;
/// More than Zstd can: 128 KiB per block of four bytes that says to repeat one.
const MAX_EXPANSION: u64 = 1 << 16;

/// How `Data.db` is stored.
#[derive(Debug)]
pub(crate) enum Form {
    /// Chunks with checksums; without a decompressor they are only checked.
    Compressed {
        info: CompressionInfo,
        decompressor: Option<ChunkDecompressor>,
    },
    /// Plain bytes, with the checksums of `CRC.db` if they can be used.
    Plain { crc: Option<CrcFile>, len: u64 },
}

impl Form {
    fn data_len(&self) -> u64 {
        match self {
            Form::Compressed { info, .. } => info.data_len,
            Form::Plain { len, .. } => *len,
        }
    }

    /// Uncompressed length of a chunk.
    fn unit(&self) -> u64 {
        match self {
            Form::Compressed { info, .. } => u64::from(info.params.chunk_len),
            Form::Plain { crc: Some(crc), .. } => u64::from(crc.chunk_len),
            Form::Plain { crc: None, .. } => PLAIN_UNIT,
        }
    }

    fn chunk_count(&self) -> u64 {
        match self {
            Form::Compressed { info, .. } => info.chunk_count() as u64,
            Form::Plain { len, .. } => len.div_ceil(self.unit()),
        }
    }

    /// Offset in the file and stored length of a chunk.
    fn stored(&self, index: u64) -> Option<(u64, u64)> {
        match self {
            Form::Compressed { info, .. } => {
                let chunk = info.chunk(usize::try_from(index).ok()?)?;
                Some((chunk.offset, chunk.stored_len))
            }
            Form::Plain { len, .. } => {
                let offset = index * self.unit();
                Some((offset, self.unit().min(len.checked_sub(offset)?)))
            }
        }
    }
}

/// Reads, digests and checks the chunks of `Data.db`.
#[derive(Debug)]
pub(crate) struct CheckedData<'a> {
    findings: &'a Findings,
    file: InputFile,
    form: Form,
    stream: ByteStream,
    /// Chunk that the stream comes to.
    next: u64,
    /// Chunks below this one are in the digest.
    checked: u64,
    digest: crc32fast::Hasher,
    stored: Vec<u8>,
    spare: Option<Block>,
    /// A chunk lay behind the end of the file.
    is_cut_off: bool,
    /// Uncompressed bytes of the chunk that stopped the cursor, or will.
    damaged: Option<Range<u64>>,
    /// Chunks whose checksum does not match or that cannot be decoded.
    pub(crate) damaged_chunks: u64,
}

impl<'a> CheckedData<'a> {
    pub(crate) fn new(findings: &'a Findings, file: InputFile, form: Form) -> CheckedData<'a> {
        CheckedData {
            findings,
            stream: ByteStream::open(&file, 0),
            file,
            form,
            next: 0,
            checked: 0,
            digest: crc32fast::Hasher::new(),
            stored: Vec::new(),
            spare: None,
            is_cut_off: false,
            damaged: None,
            damaged_chunks: 0,
        }
    }

    /// Length of the uncompressed content.
    pub(crate) fn data_len(&self) -> u64 {
        self.form.data_len()
    }

    /// Mode in which the file is read.
    pub(crate) fn read_mode(&self) -> ReadMode {
        self.file.mode()
    }

    pub(crate) fn chunk_count(&self) -> u64 {
        self.form.chunk_count()
    }

    /// Uncompressed position up to which chunks were read.
    pub(crate) fn position(&self) -> u64 {
        (self.checked * self.form.unit()).min(self.data_len())
    }

    /// Checks the next chunk without decoding it; false behind the last.
    pub(crate) fn skip_chunk(&mut self) -> Result<bool, IoError> {
        if self.next >= self.chunk_count() {
            return Ok(false);
        }
        self.read_chunk(None)?;
        Ok(true)
    }

    /// True if the chunk at `position` has not been reached.
    pub(crate) fn is_before(&self, position: u64) -> bool {
        self.next < position / self.form.unit()
    }

    /// CRC32 of the file, once all chunks have been read.
    pub(crate) fn digest(&self) -> Option<u32> {
        (self.checked >= self.chunk_count()).then(|| self.digest.clone().finalize())
    }

    /// The uncompressed bytes that the cursor could not get, if that is what stopped it.
    pub(crate) fn take_damaged(&mut self) -> Option<Range<u64>> {
        self.damaged.take()
    }

    /// A source for a cursor that starts at `position`; see [`is_before`](Self::is_before).
    pub(crate) fn segment(&mut self, position: u64) -> Segment<'_, 'a> {
        let unit = self.form.unit();
        let chunk = position / unit;
        if chunk != self.next
            && let Some((offset, _)) = self.form.stored(chunk)
        {
            self.stream = ByteStream::open(&self.file, offset);
            self.next = chunk;
        }
        self.damaged = None;
        Segment {
            data: self,
            base: position,
            skip: (position % unit) as usize,
            is_damaged: false,
        }
    }

    /// Reads the next chunk, digests it if it is the first time, checks it, and appends its content
    /// to `out`. False if it is damaged.
    fn read_chunk(&mut self, out: Option<&mut Vec<u8>>) -> Result<bool, IoError> {
        let index = self.next;
        let Some((offset, stored_len)) = self.form.stored(index) else {
            return Ok(false);
        };
        self.stored.clear();
        // A chunk's stored length is bounded by its file and by what a codec may need.
        self.stream.append(&mut self.stored, stored_len as usize)?;
        self.next += 1;
        let is_first = index >= self.checked;
        if is_first {
            self.digest.update(&self.stored);
            self.checked = index + 1;
            if self.checked == self.chunk_count() {
                self.digest_empty_chunks()?;
            }
        }
        let checked = match &mut self.form {
            Form::Compressed { info, decompressor } => {
                let raw_len = info.chunk(index as usize).map_or(0, |chunk| chunk.raw_len);
                match (out, decompressor) {
                    (Some(out), Some(decompressor)) => {
                        let limit = content_limit(info, self.stored.len() as u64);
                        decode(decompressor, &self.stored, offset, raw_len, limit, out)
                    }
                    _ => check_crc(&self.stored, offset).map(drop),
                }
            }
            Form::Plain { crc, .. } => {
                let checked = match crc {
                    Some(crc) => crc.check(index as usize, &self.stored).map(|_| ()),
                    None => Ok(()),
                };
                if let (Some(out), Ok(())) = (out, &checked) {
                    out.extend_from_slice(&self.stored);
                }
                checked
            }
        };
        let Err(error) = checked else { return Ok(true) };
        let unit = self.form.unit();
        let start = index * unit;
        self.damaged = Some(start..(start + unit).min(self.data_len()));
        if is_first {
            self.damaged_chunks += 1;
            // Where the file ends early, the first chunk that is missing tells it all.
            let is_missing = self.stored.is_empty();
            if !(is_missing && self.is_cut_off) {
                self.report(index, offset, &error);
            }
            self.is_cut_off |= is_missing;
        }
        Ok(false)
    }

    /// Adds to the digest the empty chunks that an output which was opened early ends with.
    fn digest_empty_chunks(&mut self) -> Result<(), IoError> {
        if let Form::Compressed { info, .. } = &self.form {
            // At most the length of a chunk.
            let len = (info.file_len - info.content_end()) as usize;
            let mut empty = Vec::new();
            self.stream.append(&mut empty, len)?;
            self.digest.update(&empty);
        }
        Ok(())
    }

    fn report(&self, index: u64, offset: u64, error: &FormatError) {
        let place = Place::offset(Component::Data, offset);
        match error {
            FormatError::Corrupt(c) => {
                let found = format!("{} (chunk {index} of {})", c.found, self.chunk_count());
                self.findings
                    .damage(place, &chunk_structure(c.structure), &c.expected, found);
            }
            other => self
                .findings
                .damage(place, "chunk", "a chunk", other.to_string()),
        }
    }

    fn next_block(&mut self, skip: &mut usize) -> Result<Option<Block>, IoError> {
        let mut block = self.spare.take().unwrap_or_default();
        block.clear(HEADROOM);
        while block.len() < BLOCK_LEN && self.next < self.chunk_count() {
            if !self.read_chunk(Some(&mut block.bytes))? {
                break;
            }
            let drop = (*skip).min(block.len());
            block.skip(drop);
            *skip -= drop;
        }
        Ok((!block.is_empty()).then_some(block))
    }
}

/// Every finding about a chunk is of one kind, whoever checked it.
fn chunk_structure(structure: &str) -> String {
    if structure.starts_with("chunk") {
        structure.to_owned()
    } else {
        "chunk.crc".to_owned()
    }
}

/// Memory is set aside only for what stored bytes can become.
fn content_limit(info: &CompressionInfo, stored_len: u64) -> u64 {
    let expansion = match info.params.codec() {
        Ok(Codec::Lz4) => MAX_LZ4_EXPANSION,
        _ => MAX_EXPANSION,
    };
    (stored_len * expansion).max(SMALL_CHUNK)
}

fn decode(
    decompressor: &mut ChunkDecompressor,
    stored: &[u8],
    offset: u64,
    raw_len: u32,
    limit: u64,
    out: &mut Vec<u8>,
) -> Result<(), FormatError> {
    if u64::from(raw_len) > limit {
        check_crc(stored, offset)?;
        let expected = format!("at most {limit} bytes of content");
        return Err(FormatError::corrupt(
            "chunk.length",
            offset,
            expected,
            raw_len.to_string(),
        ));
    }
    let start = out.len();
    out.resize(start + raw_len as usize, 0);
    let decoded = decompressor.decompress(stored, offset, &mut out[start..]);
    if decoded.is_err() {
        out.truncate(start);
    }
    decoded.map(|_| ())
}

/// The content from a partition on, for one cursor.
#[derive(Debug)]
pub(crate) struct Segment<'s, 'a> {
    data: &'s mut CheckedData<'a>,
    base: u64,
    /// Bytes of the first chunk that lie before the start.
    skip: usize,
    is_damaged: bool,
}

impl BlockSource for Segment<'_, '_> {
    fn next_block(&mut self) -> Result<Option<Block>, EngineError> {
        if !self.is_damaged {
            let block = self
                .data
                .next_block(&mut self.skip)
                .map_err(EngineError::from)?;
            self.is_damaged = self.data.damaged.is_some();
            if block.is_some() {
                return Ok(block);
            }
        }
        match (self.is_damaged, &self.data.damaged) {
            (true, Some(range)) => Err(EngineError::Format(FormatError::corrupt(
                "chunk",
                range.start,
                "content",
                "a damaged chunk",
            ))),
            _ => Ok(None),
        }
    }

    fn recycle(&mut self, block: Block) {
        if block.bytes.capacity() <= 4 * (BLOCK_LEN + HEADROOM) {
            self.data.spare = Some(block);
        }
    }

    fn total_len(&self) -> u64 {
        self.data.data_len().saturating_sub(self.base)
    }
}
