//! CRC.db: checksums of an uncompressed Data.db.
//!
//! ```text
//! i32 chunkSize | u32 CRC32 of each chunk; the last may be short
//! ```
//!
//! An SSTable that a compaction opened early has one more checksum, of an empty chunk (see
//! `compression::info`), as have those of ScyllaDB. `DataIntegrityMetadata.ChecksumValidator` never reads
//! that far.
//!
//! Source: `ChecksummedSequentialWriter`, `DataIntegrityMetadata.ChecksumValidator`.

use crate::byte_reader::ByteReader;
use crate::byte_sink::ByteSink;
use crate::compression::crc32;
use crate::error::{Error, Result};

/// Chunk length of Cassandra's writer, which is that of its buffer.
pub const DEFAULT_CRC_CHUNK_LEN: u32 = 65_536;

/// CRC32 of no bytes.
const EMPTY_CHUNK_CRC: [u8; 4] = [0; 4];

/// A parsed CRC.db.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrcFile {
    /// Number of bytes of Data.db per checksum.
    pub chunk_len: u32,
    /// Checksums of the chunks that have content.
    pub crcs: Vec<u32>,
}

impl CrcFile {
    /// Parses the checksums of a Data.db of `data_len` bytes.
    ///
    /// # Errors
    /// Corruption if there are fewer checksums than chunks, or more than one additional one of an empty
    /// chunk, or the chunk length is not that of any writer's buffer.
    pub fn parse(bytes: &[u8], data_len: u64) -> Result<CrcFile> {
        let mut reader = ByteReader::new(bytes);
        let chunk_len = match reader.i32("crc.chunk_size")? {
            // A single chunk may have any length, so nothing else would detect this.
            len @ 1.. if len.count_ones() == 1 => len as u32,
            len => {
                return Err(Error::corrupt(
                    "crc.chunk_size",
                    0,
                    "a power of two, the length of a writer's buffer",
                    len,
                ));
            }
        };
        match CrcFile::split(bytes, data_len) {
            Some((file, true)) => Ok(file),
            _ => {
                let wanted = data_len.div_ceil(u64::from(chunk_len));
                Err(reader.corrupt(
                    "crc.count",
                    format!("{wanted} checksums for {data_len} bytes in chunks of {chunk_len}"),
                    format!("{} bytes", reader.remaining()),
                ))
            }
        }
    }

    /// Parses the checksums of a file that may have more, which Cassandra does not read
    /// (`DataIntegrityMetadata.ChecksumValidator`). `None` if it has fewer.
    pub fn parse_start(bytes: &[u8], data_len: u64) -> Option<CrcFile> {
        CrcFile::split(bytes, data_len).map(|(file, _)| file)
    }

    /// Returns the checksums of a Data.db of this length, and whether nothing but one of an empty chunk follows.
    fn split(bytes: &[u8], data_len: u64) -> Option<(CrcFile, bool)> {
        let (chunk_len, words) = bytes.split_first_chunk::<4>()?;
        let chunk_len = u32::from_be_bytes(*chunk_len);
        if !chunk_len.is_power_of_two() {
            return None;
        }
        let wanted = usize::try_from(data_len.div_ceil(u64::from(chunk_len))).ok()?;
        let (words, rest) = words.as_chunks::<4>();
        let (crcs, more) = words.split_at_checked(wanted)?;
        let crcs = crcs.iter().map(|word| u32::from_be_bytes(*word)).collect();
        let is_all = matches!((more, rest), ([] | [EMPTY_CHUNK_CRC], []));
        Some((CrcFile { chunk_len, crcs }, is_all))
    }

    /// Validates chunk `index` of Data.db and returns its CRC32.
    ///
    /// # Errors
    /// Corruption, with the chunk's offset in Data.db.
    pub fn check(&self, index: usize, chunk: &[u8]) -> Result<u32> {
        let offset = index as u64 * u64::from(self.chunk_len);
        let computed = crc32(chunk);
        match self.crcs.get(index) {
            Some(&stored) if stored == computed => Ok(computed),
            Some(stored) => Err(Error::corrupt(
                "chunk.crc",
                offset,
                format!("{} bytes with CRC32 {stored:08x} (CRC.db)", chunk.len()),
                format!("{computed:08x}"),
            )),
            None => Err(Error::corrupt(
                "chunk.crc",
                offset,
                format!("at most {} chunks (CRC.db)", self.crcs.len()),
                format!("chunk {index}"),
            )),
        }
    }

    /// Appends the file's bytes.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.put_u32(self.chunk_len);
        for &crc in &self.crcs {
            out.put_u32(crc);
        }
    }
}

/// Computes the checksums of a Data.db that is written piece by piece.
#[derive(Clone, Debug)]
pub struct CrcFileWriter {
    chunk_len: u32,
    /// Number of bytes in the running checksum.
    filled: u32,
    running: crc32fast::Hasher,
    crcs: Vec<u32>,
}

impl CrcFileWriter {
    /// Creates a writer of checksums of chunks of `chunk_len` bytes.
    ///
    /// # Panics
    /// If `chunk_len` is 0.
    pub fn new(chunk_len: u32) -> CrcFileWriter {
        assert!(chunk_len > 0, "chunks without bytes");
        CrcFileWriter {
            chunk_len,
            filled: 0,
            running: crc32fast::Hasher::new(),
            crcs: Vec::new(),
        }
    }

    /// Adds the next bytes of Data.db.
    pub fn update(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let room = (self.chunk_len - self.filled) as usize;
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.running.update(now);
            self.filled += now.len() as u32;
            if self.filled == self.chunk_len {
                self.close_chunk();
            }
            bytes = later;
        }
    }

    fn close_chunk(&mut self) {
        self.crcs.push(self.running.clone().finalize());
        self.running.reset();
        self.filled = 0;
    }

    /// Ends the last chunk.
    pub fn finish(mut self) -> CrcFile {
        if self.filled > 0 {
            self.close_chunk();
        }
        CrcFile {
            chunk_len: self.chunk_len,
            crcs: self.crcs,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_any_length_give_the_same_file() {
        let data: Vec<u8> = (0..1000u32).map(|i| (i * 7) as u8).collect();
        let whole: Vec<u32> = data.chunks(64).map(crc32).collect();
        for piece in [1, 63, 64, 65, 1000] {
            let mut writer = CrcFileWriter::new(64);
            data.chunks(piece).for_each(|bytes| writer.update(bytes));
            let file = writer.finish();
            assert_eq!(file.crcs, whole);
            let mut out = Vec::new();
            file.write(&mut out);
            assert_eq!(CrcFile::parse(&out, 1000).unwrap(), file);
        }
    }

    #[test]
    fn counts_must_agree() {
        let mut out = Vec::new();
        CrcFile {
            chunk_len: 64,
            crcs: vec![1, 0],
        }
        .write(&mut out);
        for (len, good) in [
            (0, false),
            (64, true),
            (65, true),
            (128, true),
            (129, false),
            (u64::MAX, false),
        ] {
            assert_eq!(CrcFile::parse(&out, len).is_ok(), good, "{len}");
        }
        for len in 0..out.len() {
            assert!(CrcFile::parse(&out[..len], 128).is_err());
        }
        // The second checksum is that of no bytes, as in an output that was opened early.
        assert_eq!(CrcFile::parse(&out, 64).unwrap().crcs, [1]);
        out[11] = 1;
        assert!(CrcFile::parse(&out, 64).is_err());
        assert!(CrcFile::parse(&[0; 4], 0).is_err());
        assert!(CrcFile::parse(&[0xff; 4], 0).is_err());
        out.push(0);
        assert!(CrcFile::parse(&out, 128).is_err());
        assert_eq!(CrcFile::parse_start(&out, 64).unwrap().crcs, [1]);
        assert_eq!(CrcFile::parse_start(&out, 128).unwrap().crcs.len(), 2);
        assert_eq!(CrcFile::parse_start(&out, 129), None);
        out[0] = 1;
        assert_eq!(CrcFile::parse_start(&out, 64), None);
    }

    #[test]
    fn damage_names_the_place_in_data() {
        let mut writer = CrcFileWriter::new(64);
        writer.update(&[5; 100]);
        let file = writer.finish();
        file.check(1, &[5; 36]).unwrap();
        let error = file.check(1, &[6; 36]).unwrap_err().to_string();
        assert!(error.contains("offset 64"), "{error}");
        assert!(file.check(2, &[]).is_err());
    }
}
