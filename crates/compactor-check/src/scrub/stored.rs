//! SSTable as stored on disk, opened as far as possible.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use compactor_engine::input::{
    ComponentList, DataFile, InputSstable, SharedTries, TrieFiles, layout_of,
};
use compactor_engine::read::Encoding;
use compactor_io::{InputFile, Io, ReadMode};
use compactor_sstable::bloom_filter::BloomFilter;
use compactor_sstable::compression::chunk::ChunkDecompressor;
use compactor_sstable::compression::info::CompressionInfo;
use compactor_sstable::data::layout::Layout;
use compactor_sstable::descriptor::Descriptor;
use compactor_sstable::partitioner::Partitioner;
use compactor_sstable::{Component, Error as FormatError};

use super::PARTITIONER;
use crate::verify::chunks::Form;
use crate::verify::files::{Files, fp_chance};
use crate::verify::finding::Findings;
use crate::{Error, Result};

/// State needed to read `Data.db`.
#[derive(Debug)]
pub(super) struct Stored {
    /// As an input of a merge.
    pub(super) input: InputSstable,
    pub(super) layout: Arc<Layout>,
    pub(super) file: InputFile,
    pub(super) has_index: bool,
    /// Index of the BTI format.
    pub(super) tries: Option<Arc<TrieFiles>>,
    /// Apparently intact: `Filter.db` has no checksum.
    pub(super) filter: Option<BloomFilter>,
    pub(super) digest: Option<u32>,
}

impl Stored {
    /// Opens the existing components. Damage in components that are not needed becomes a finding.
    pub(super) fn open(
        io: &Io,
        mode: ReadMode,
        descriptor: &Descriptor,
        findings: &Findings,
    ) -> Result<Stored> {
        let files = Files::new(io, mode, descriptor, findings)?;
        if !files.has(Component::Data) {
            let why = "it holds everything that could be salvaged";
            return Err(cannot(descriptor, Component::Data, why));
        }
        let statistics = files.statistics()?;
        let fp_chance = fp_chance(statistics.as_ref());
        files.check_list(fp_chance)?;
        let Some(statistics) = statistics else {
            let why = "it holds the columns and the base of all timestamps, and cannot be rebuilt even from a schema";
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
        let encoding = match files.compression_info(file.len())? {
            Some(info) => {
                let path = descriptor.path(Component::CompressionInfo);
                let decompressor = ChunkDecompressor::for_file(&info)
                    .map_err(|e| e.with_file(&path, Component::CompressionInfo))?;
                Encoding::Compressed { info, decompressor }
            }
            None if files.has(Component::CompressionInfo) || lists_info => {
                let why = "it holds the positions of all chunks, and cannot be rebuilt";
                return Err(cannot(descriptor, Component::CompressionInfo, why));
            }
            None => Encoding::Plain {
                crc: files.crc_file(file.len())?,
                len: file.len(),
            },
        };
        Ok(Stored {
            input: InputSstable {
                partitioner,
                descriptor: descriptor.clone(),
                statistics,
                data: DataFile::of(&file),
                encoding: Arc::new(encoding),
                files: ComponentList::default(),
                notes: Vec::new(),
                tries: SharedTries::default(),
            },
            layout,
            file,
            has_index: files.has(Component::Index),
            tries: files.tries(&SharedTries::default())?,
            filter,
            digest,
        })
    }

    /// Storage form of `Data.db`.
    pub(super) fn form(&self) -> Form {
        match &*self.input.encoding {
            Encoding::Compressed { info, decompressor } => Form::Compressed {
                info: info.clone(),
                decompressor: Some(decompressor.clone()),
            },
            Encoding::Plain { crc, len } => Form::Plain {
                crc: crc.clone(),
                len: *len,
            },
        }
    }

    /// Offsets of the chunks of a compressed file.
    pub(super) fn chunks(&self) -> Option<&CompressionInfo> {
        match &*self.input.encoding {
            Encoding::Compressed { info, .. } => Some(info),
            Encoding::Plain { .. } => None,
        }
    }

    /// True if damage inside a chunk is detected.
    pub(super) fn is_checksummed(&self) -> bool {
        !matches!(*self.input.encoding, Encoding::Plain { crc: None, .. })
    }

    pub(super) fn data_path(&self) -> PathBuf {
        self.input.descriptor.path(Component::Data)
    }
}

/// Error for a component without which nothing can be salvaged.
fn cannot(descriptor: &Descriptor, component: Component, why: &str) -> Error {
    let path = descriptor.path(component);
    FormatError::corrupt(
        "sstable",
        0,
        format!("an intact {component} ({why})"),
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
