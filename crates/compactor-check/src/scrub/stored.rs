//! SSTable as stored on disk, opened as far as possible.

use std::path::Path;
use std::sync::Arc;

use compactor_engine::input::{ComponentList, DataFile, InputSstable, SharedTries, layout_of};
use compactor_engine::read::Encoding;
use compactor_io::{InputFile, Io, ReadMode};
use compactor_sstable::bloom_filter::BloomFilter;
use compactor_sstable::compression::chunk::ChunkDecompressor;
use compactor_sstable::compression::crc_file::CrcFile;
use compactor_sstable::compression::info::CompressionInfo;
use compactor_sstable::data::layout::Layout;
use compactor_sstable::descriptor::Descriptor;
use compactor_sstable::partitioner::Partitioner;
use compactor_sstable::statistics::Statistics;
use compactor_sstable::{Component, Error as FormatError};

use super::PARTITIONER;
use crate::verify::chunks::Form;
use crate::verify::files::{Files, fp_chance};
use crate::verify::finding::Findings;
use crate::{Error, Result};

/// State needed to read `Data.db`.
#[derive(Debug)]
pub(super) struct Stored {
    pub(super) descriptor: Descriptor,
    pub(super) file: InputFile,
    pub(super) statistics: Statistics,
    pub(super) layout: Arc<Layout>,
    pub(super) has_index: bool,
    /// Apparently intact: `Filter.db` has no checksum.
    pub(super) filter: Option<BloomFilter>,
    pub(super) digest: Option<u32>,
    compressed: Option<(CompressionInfo, ChunkDecompressor)>,
    crc: Option<CrcFile>,
}

impl Stored {
    /// Opens the existing components. Damage in components that are not needed becomes a finding.
    pub(super) fn open(
        io: &Io,
        mode: ReadMode,
        descriptor: &Descriptor,
        findings: &Findings,
    ) -> Result<Stored> {
        let list = ComponentList::read(descriptor)?;
        let files = Files::new(io, mode, descriptor, findings, list)?;
        if !files.has(Component::Data) {
            let why = "which holds all that could be salvaged";
            return Err(cannot(descriptor, Component::Data, why));
        }
        let statistics = files.statistics()?;
        let fp_chance = fp_chance(statistics.as_ref());
        files.check_list(fp_chance)?;
        let Some(statistics) = statistics else {
            let why = "which holds the columns and the base of all timestamps and cannot be rebuilt, even \
                from a schema: restore it from a snapshot or backup of this SSTable, or take the whole \
                SSTable from another replica";
            return Err(cannot(descriptor, Component::Statistics, why));
        };
        let at = |e: FormatError| {
            let path = descriptor.path(Component::Statistics);
            Error::from(e.with_file(&path, Component::Statistics))
        };
        let partitioner =
            Partitioner::from_class_name(&statistics.validation.partitioner).map_err(at)?;
        if partitioner != PARTITIONER {
            return Err(at(FormatError::unsupported(format!(
                "scrub of a table of {}",
                partitioner.class_name()
            ))));
        }
        let layout = Arc::new(layout_of(&statistics.header, descriptor.version).map_err(at)?);
        let filter = files.filter(fp_chance)?;
        // It is written anew even if it is damaged.
        files.summary()?;
        let digest = files.digest()?;
        let file = io.open(&descriptor.path(Component::Data), mode)?;
        let lists_info = findings.is_damaged(Component::CompressionInfo);
        let compressed = match files.compression_info(file.len())? {
            Some(info) => {
                let path = descriptor.path(Component::CompressionInfo);
                let decompressor = ChunkDecompressor::for_file(&info)
                    .map_err(|e| e.with_file(&path, Component::CompressionInfo))?;
                Some((info, decompressor))
            }
            None if files.has(Component::CompressionInfo) || lists_info => {
                let why = "without which compressed data cannot be taken apart. Take it from a \
                    snapshot or backup of this SSTable, or the whole SSTable from another replica";
                return Err(cannot(descriptor, Component::CompressionInfo, why));
            }
            None => None,
        };
        let crc = match compressed {
            Some(_) => None,
            None => files.crc_file(file.len())?,
        };
        Ok(Stored {
            descriptor: descriptor.clone(),
            file,
            statistics,
            layout,
            has_index: files.has(Component::Index),
            filter,
            digest,
            compressed,
            crc,
        })
    }

    /// Storage form of `Data.db`.
    pub(super) fn form(&self) -> Form {
        match &self.compressed {
            Some((info, decompressor)) => Form::Compressed {
                info: info.clone(),
                decompressor: Some(decompressor.clone()),
            },
            None => Form::Plain {
                crc: self.crc.clone(),
                len: self.file.len(),
            },
        }
    }

    /// Offsets of the chunks of a compressed file.
    pub(super) fn chunks(&self) -> Option<&CompressionInfo> {
        self.compressed.as_ref().map(|(info, _)| info)
    }

    /// True if damage inside a chunk is detected.
    pub(super) fn is_checksummed(&self) -> bool {
        self.compressed.is_some() || self.crc.is_some()
    }

    /// Length of the uncompressed content.
    pub(super) fn data_len(&self) -> u64 {
        self.chunks().map_or(self.file.len(), |info| info.data_len)
    }

    /// Description from which the settings of an output are derived.
    pub(super) fn as_input(&self) -> InputSstable {
        let encoding = match &self.compressed {
            Some((info, decompressor)) => Encoding::Compressed {
                info: info.clone(),
                decompressor: decompressor.clone(),
            },
            None => Encoding::Plain {
                crc: self.crc.clone(),
                len: self.file.len(),
            },
        };
        InputSstable {
            // No other partitioner is scrubbed.
            partitioner: PARTITIONER,
            descriptor: self.descriptor.clone(),
            statistics: self.statistics.clone(),
            layout: Arc::clone(&self.layout),
            data: DataFile::of(&self.file),
            encoding: Arc::new(encoding),
            files: ComponentList::default(),
            notes: Vec::new(),
            tries: SharedTries::default(),
        }
    }
}

/// Error for a component without which nothing can be salvaged.
fn cannot(descriptor: &Descriptor, component: Component, why: &str) -> Error {
    let path = descriptor.path(component);
    FormatError::corrupt(
        "sstable",
        0,
        format!("a sound {component}, {why}"),
        found(&path),
    )
    .with_file(&path, component)
    .into()
}

fn found(path: &Path) -> &'static str {
    if path.exists() {
        "a damaged one"
    } else {
        "no such file"
    }
}
