//! Checks of `Data.db` as stored on disk: digest, chunk checksums, and chunks decoded for the cursor.
//!
//! One pass does all three. Chunks are digested once, in file order, while the content is decoded. When the cursor
//! has to restart after damage, the chunks in between are still digested and checked.
//!
//! A chunk is decoded as in a merge, by `compactor_sstable::compression`. Iteration over chunks does not use the
//! engine's `DecodedBlocks`, which stops at the first error:
//!
//! - There, a block of many chunks is either sound or an error. Here, content before a damaged chunk is returned, and
//!   reading continues after it.
//! - There, the digest covers decoded blocks. Here, it covers every stored byte once, including chunks that are
//!   damaged, skipped, or read again from another position.
//! - There, `CompressionInfo.db` and the file must agree. Here, a codec may be unknown, so that only checksums can be
//!   checked, and chunks may be beyond the end of the file.
//! - There, memory is allocated for the content length stated in `CompressionInfo.db`. Here, that length is not
//!   trusted, and memory is limited by the maximum expansion of the stored bytes.
//! - There, one range is read from its start. A scrub continues from any position, and goes back.

use std::ops::Range;

use compactor_engine::read::{Block, BlockSource, HEADROOM};
use compactor_io::{InputFile, IoError, ReadMode};
use compactor_sstable::compression::chunk::{ChunkDecompressor, check_crc};
use compactor_sstable::compression::codec::Codec;
use compactor_sstable::compression::crc_file::CrcFile;
use compactor_sstable::compression::info::CompressionInfo;
use compactor_sstable::{Component, Error as FormatError};

use super::finding::{Findings, Location};
use super::stream::ByteStream;
use crate::Error;

/// Uncompressed bytes passed to the cursor at once, at least one chunk.
const BLOCK_LEN: usize = 256 << 10;
/// Unit of reading where there are no checksums.
const PLAIN_UNIT: u64 = 64 << 10;
/// Content length for which memory is allocated without checking the maximum expansion of the stored bytes.
const SMALL_CHUNK: u64 = 1 << 20;
/// Maximum expansion of LZ4: 255 bytes per byte of a match's length.
const MAX_LZ4_EXPANSION: u64 = 256;
/// Upper bound of the expansion of any codec. Zstd reaches 128 KiB per four-byte RLE block.
const MAX_EXPANSION: u64 = 1 << 16;

/// Storage form of `Data.db`.
#[derive(Debug)]
pub(crate) enum Form {
    /// Chunks with checksums; without a decompressor they are only checked.
    Compressed {
        info: CompressionInfo,
        decompressor: Option<ChunkDecompressor>,
    },
    /// Uncompressed bytes, with the checksums of `CRC.db` if usable.
    Plain { crc: Option<CrcFile>, len: u64 },
}

impl Form {
    fn data_len(&self) -> u64 {
        match self {
            Form::Compressed { info, .. } => info.data_len,
            Form::Plain { len, .. } => *len,
        }
    }

    /// Returns the uncompressed length of a chunk.
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

    /// Returns the file offset and stored length of a chunk.
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
    /// Next chunk of the stream.
    next: u64,
    /// Number of chunks included in the digest.
    checked: u64,
    digest: crc32fast::Hasher,
    stored: Vec<u8>,
    spare: Option<Block>,
    /// Whether a chunk was beyond the end of the file.
    is_cut_off: bool,
    /// Uncompressed range of the chunk that stopped or will stop the cursor.
    damaged: Option<Range<u64>>,
    /// Number of chunks whose checksum does not match or that cannot be decoded.
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

    /// Returns the length of the uncompressed content.
    pub(crate) fn data_len(&self) -> u64 {
        self.form.data_len()
    }

    /// Returns the read mode of the file.
    pub(crate) fn read_mode(&self) -> ReadMode {
        self.file.mode()
    }

    pub(crate) fn chunk_count(&self) -> u64 {
        self.form.chunk_count()
    }

    /// Returns the uncompressed position up to which chunks were read.
    pub(crate) fn position(&self) -> u64 {
        (self.checked * self.form.unit()).min(self.data_len())
    }

    /// Checks the next chunk without decoding it; false after the last.
    pub(crate) fn skip_chunk(&mut self) -> Result<bool, IoError> {
        if self.next >= self.chunk_count() {
            return Ok(false);
        }
        self.read_chunk(None)?;
        Ok(true)
    }

    /// Returns true if the chunk at `position` has not been reached.
    pub(crate) fn is_before(&self, position: u64) -> bool {
        self.next < position / self.form.unit()
    }

    /// Returns the CRC32 of the file, once all chunks have been read.
    pub(crate) fn digest(&self) -> Option<u32> {
        (self.checked >= self.chunk_count()).then(|| self.digest.clone().finalize())
    }

    /// Takes the range of uncompressed bytes that stopped the cursor, if any.
    pub(crate) fn take_damaged(&mut self) -> Option<Range<u64>> {
        self.damaged.take()
    }

    /// Returns a source for a cursor that starts at `position`; see [`is_before`](Self::is_before).
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

    /// Reads the next chunk, digests it on the first read, checks it, and appends its content to `out`. Returns false
    /// if it is damaged.
    fn read_chunk(&mut self, out: Option<&mut Vec<u8>>) -> Result<bool, IoError> {
        let index = self.next;
        let Some((offset, stored_len)) = self.form.stored(index) else {
            return Ok(false);
        };
        self.stored.clear();
        // A chunk's stored length is bounded by its file and by the codec's maximum.
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
            // If the file ends early, only the first missing chunk is reported.
            let is_missing = self.stored.is_empty();
            if !(is_missing && self.is_cut_off) {
                self.report(index, offset, &error);
            }
            self.is_cut_off |= is_missing;
        }
        Ok(false)
    }

    /// Adds to the digest the empty chunks at the end of an output that was opened early.
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
        let place = Location::offset(Component::Data, offset);
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

/// Returns the structure of a finding about a chunk, the same for every check.
fn chunk_structure(structure: &str) -> String {
    if structure.starts_with("chunk") {
        structure.to_owned()
    } else {
        "chunk.crc".to_owned()
    }
}

/// Returns the maximum uncompressed length of a chunk of `stored_len` bytes, which bounds memory.
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

/// Content from a partition onwards, for one cursor.
#[derive(Debug)]
pub(crate) struct Segment<'s, 'a> {
    data: &'s mut CheckedData<'a>,
    base: u64,
    /// Bytes of the first chunk before the start.
    skip: usize,
    is_damaged: bool,
}

impl BlockSource for Segment<'_, '_> {
    fn next_block(&mut self) -> Result<Option<Block>, Error> {
        if !self.is_damaged {
            let block = self.data.next_block(&mut self.skip).map_err(Error::from)?;
            self.is_damaged = self.data.damaged.is_some();
            if block.is_some() {
                return Ok(block);
            }
        }
        match (self.is_damaged, &self.data.damaged) {
            (true, Some(range)) => Err(Error::Format(FormatError::corrupt(
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
