//! Components of an SSTable: sizes on disk and in a node's memory.

use std::collections::BTreeMap;
use std::fs;
use std::io::{ErrorKind, Read};
use std::path::Path;

use compactor_engine::input::{ComponentList, len_of_other, read_small};
use compactor_io::{Io, ReadMode, open_regular};
use compactor_sstable::big::summary::Summary;
use compactor_sstable::compression::info::{CompressionInfo, NO_MAX_COMPRESSED_LEN};
use compactor_sstable::descriptor::Descriptor;
use compactor_sstable::toc::Toc;
use compactor_sstable::{Component, Error as FormatError};
use serde::Serialize;

use super::Files;
use crate::{Error, Result};

/// Bytes that a node keeps in memory per chunk: its offset (`CompressionMetadata.offHeapSize`).
const OFFSET_LEN: u64 = 8;

/// One file of an SSTable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ComponentFile {
    /// Name without the SSTable's prefix, such as `Data.db`.
    pub name: String,
    /// Its length.
    pub bytes: u64,
}

/// How `Data.db` is compressed.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct CompressionMetadata {
    /// Class name of the compressor.
    pub compressor: String,
    /// The compressor's own options.
    pub options: BTreeMap<String, String>,
    /// Uncompressed bytes per chunk.
    pub chunk_length: u32,
    /// Chunks that are not shorter than this when compressed are stored uncompressed; `None` for no limit.
    pub max_compressed_length: Option<u32>,
    /// Number of chunks that have content.
    pub chunks: u64,
    /// Number of chunks without content at the end of `Data.db`, as compactions that opened their output early leave
    /// them.
    pub empty_chunks: u64,
    /// Bytes of `Data.db`, including the checksum after each chunk.
    pub compressed_bytes: u64,
    /// Bytes of its content.
    pub uncompressed_bytes: u64,
    /// Compressed over uncompressed bytes, as `nodetool tablestats` has it. `Statistics.db` has its
    /// own, which leaves the chunks' checksums out.
    pub ratio: f64,
    /// Bytes of memory that a node needs for the offsets of the chunks.
    pub offsets_memory_bytes: u64,
}

impl CompressionMetadata {
    pub(super) fn of(info: &CompressionInfo) -> CompressionMetadata {
        let max_len = info.params.max_compressed_len;
        let chunks = info.chunk_count() as u64;
        CompressionMetadata {
            compressor: info.params.compressor.clone(),
            options: info.params.options.iter().cloned().collect(),
            chunk_length: info.params.chunk_len,
            max_compressed_length: (max_len != NO_MAX_COMPRESSED_LEN).then_some(max_len),
            chunks,
            empty_chunks: info.empty_chunk_count() as u64,
            compressed_bytes: info.file_len,
            uncompressed_bytes: info.data_len,
            ratio: info.file_len as f64 / info.data_len.max(1) as f64,
            offsets_memory_bytes: info.chunk_offsets.len() as u64 * OFFSET_LEN,
        }
    }
}

/// The Bloom filter over partition keys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct BloomFilterMetadata {
    /// Length of `Filter.db`.
    pub file_bytes: u64,
    /// Bytes of memory that a node needs for it.
    pub memory_bytes: u64,
    /// Number of hash functions, that is, of bits that each key sets; 0 for a filter that matches every key.
    pub hash_count: u32,
}

/// The sample of `Index.db` that nodes keep in memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct IndexSummaryMetadata {
    /// Length of `Summary.db`.
    pub file_bytes: u64,
    /// Bytes of memory that a node needs for it (`IndexSummary.getOffHeapSize`).
    pub memory_bytes: u64,
    /// Number of entries.
    pub entries: u64,
    /// Partitions per entry at full sampling.
    pub min_index_interval: u32,
    /// 128 at full sampling, less where a node dropped entries to save memory.
    pub sampling_level: u32,
}

impl IndexSummaryMetadata {
    pub(super) fn of((file_bytes, summary): &(u64, Summary)) -> IndexSummaryMetadata {
        // An offset of four bytes, the key, and a position of eight.
        let entries = summary.entries().map(|(key, _)| 4 + key.len() as u64 + 8);
        IndexSummaryMetadata {
            file_bytes: *file_bytes,
            memory_bytes: entries.sum(),
            entries: summary.len() as u64,
            min_index_interval: summary.min_index_interval,
            sampling_level: summary.sampling_level,
        }
    }
}

/// All components, and other files that `TOC.txt` lists. The directory, which may have the files of tens of thousands of
/// SSTables, is not listed.
pub(super) fn list(io: &Io, mode: ReadMode, descriptor: &Descriptor) -> Result<Vec<ComponentFile>> {
    let list = ComponentList::known(descriptor)?;
    for component in Component::ALL.into_iter().filter(|c| !list.has(*c)) {
        refuse_dangling(&descriptor.path(component), component)?;
    }
    let file = |name: &str, bytes| ComponentFile {
        name: name.to_owned(),
        bytes,
    };
    let known = list.present.iter();
    let mut files: Vec<_> = known
        .map(|(component, bytes)| file(component.file_suffix(), *bytes))
        .collect();
    let len_of_toc = list.len_of(Component::Toc);
    if len_of_toc.is_some_and(|len| Toc::check_len(len).is_ok()) {
        let bytes = read_small(io, mode, &descriptor.path(Component::Toc))?;
        // An unreadable list names no files.
        let toc = Toc::parse(&bytes).ok();
        let others = toc.iter().flat_map(Toc::unknown);
        files.extend(others.filter_map(|name| Some(file(name, len_of_other(descriptor, name)?))));
    }
    files.sort_by(|a, b| a.name.cmp(&b.name));
    files.dedup_by(|a, b| a.name == b.name);
    Ok(files)
}

/// Refuses a required component that is a dangling symbolic link. A file that no longer exists may have been removed by
/// a running node.
fn refuse_dangling(path: &Path, component: Component) -> Result<()> {
    let is_dispensable = matches!(
        component,
        Component::Summary
            | Component::Filter
            | Component::Digest
            | Component::Crc
            | Component::Toc
    );
    match fs::read_link(path) {
        Ok(target) if !is_dispensable => {
            let expected = format!("a file {component}");
            let found = format!(
                "a symbolic link to {}, which does not exist",
                target.display()
            );
            let error = FormatError::corrupt("sstable", 0, expected, found);
            Err(error.with_file(path, component).into())
        }
        _ => Ok(()),
    }
}

impl Files<'_> {
    /// Length and content of `Summary.db`; a damaged one is noted.
    pub(super) fn summary(&self, notes: &mut Vec<String>) -> Result<Option<(u64, Summary)>> {
        const COMPONENT: Component = Component::Summary;
        let Some(file_bytes) = self.bytes_of(COMPONENT) else {
            return Ok(None);
        };
        match Summary::parse(&self.read(COMPONENT)?, self.descriptor.version) {
            Ok(summary) => Ok(Some((file_bytes, summary))),
            Err(error) => {
                self.note_damage(error, COMPONENT, notes);
                Ok(None)
            }
        }
    }

    /// The filter from its first bytes: it may be gigabytes long. A damaged one is noted.
    pub(super) fn bloom_filter(
        &self,
        notes: &mut Vec<String>,
    ) -> Result<Option<BloomFilterMetadata>> {
        const COMPONENT: Component = Component::Filter;
        let Some(file_bytes) = self.bytes_of(COMPONENT) else {
            return Ok(None);
        };
        if file_bytes == 0 {
            return Ok(Some(BloomFilterMetadata {
                file_bytes,
                memory_bytes: 0,
                hash_count: 0,
            }));
        }
        let path = self.descriptor.path(COMPONENT);
        let mut head = [0u8; 8];
        let mut file = open_regular(&path)?;
        match file.read_exact(&mut head) {
            Ok(()) => {}
            Err(e) if e.kind() == ErrorKind::UnexpectedEof => {
                let error = FormatError::corrupt(
                    "filter",
                    0,
                    "a head of 8 bytes",
                    format!("{file_bytes} bytes"),
                );
                self.note_damage(error, COMPONENT, notes);
                return Ok(None);
            }
            Err(e) => return Err(Error::file("read", &path)(e)),
        }
        let [h0, h1, h2, h3, w0, w1, w2, w3] = head;
        let hash_count = u32::from_be_bytes([h0, h1, h2, h3]);
        let words = u32::from_be_bytes([w0, w1, w2, w3]);
        let memory_bytes = 8 * u64::from(words);
        if 8 + memory_bytes != file_bytes {
            let error = FormatError::corrupt(
                "filter.word_count",
                4,
                format!("{} bytes of words", file_bytes - 8),
                format!("{words} words"),
            );
            self.note_damage(error, COMPONENT, notes);
            return Ok(None);
        }
        Ok(Some(BloomFilterMetadata {
            file_bytes,
            memory_bytes,
            hash_count,
        }))
    }
}
