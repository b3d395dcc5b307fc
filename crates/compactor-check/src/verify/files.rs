//! Existing components of an SSTable, and parsers of the small ones.

use std::io;
use std::path::Path;
use std::sync::Arc;

use compactor_engine::input::{
    ComponentList, READABLE, SharedTries, TrieFiles, freeze_user_types, parse_data_name,
    read_small, refuse_link_without_sidecars,
};
use compactor_io::{Io, ReadMode};
use compactor_sstable::big::Summary;
use compactor_sstable::big::summary::BASE_SAMPLING_LEVEL;
use compactor_sstable::bloom_filter::BloomFilter;
use compactor_sstable::compression::CRC_LEN;
use compactor_sstable::compression::crc_file::CrcFile;
use compactor_sstable::compression::info::CompressionInfo;
use compactor_sstable::descriptor::Descriptor;
use compactor_sstable::digest;
use compactor_sstable::statistics::Statistics;
use compactor_sstable::toc::Toc;
use compactor_sstable::{Component, Error as FormatError, Format, Version};

use super::finding::{Findings, Location, Severity};
use crate::{Error, Result};

/// The components of one SSTable.
pub(crate) struct Files<'a> {
    io: &'a Io,
    mode: ReadMode,
    descriptor: &'a Descriptor,
    findings: &'a Findings,
    list: ComponentList,
}

impl<'a> Files<'a> {
    /// Looks up which components exist.
    ///
    /// # Errors
    /// None does, or one cannot be looked up.
    pub(crate) fn new(
        io: &'a Io,
        mode: ReadMode,
        descriptor: &'a Descriptor,
        findings: &'a Findings,
    ) -> Result<Files<'a>> {
        let list = ComponentList::known(descriptor)?;
        if list.present.is_empty() {
            let missing = io::Error::from(io::ErrorKind::NotFound);
            return Err(Error::file("open", descriptor.path(Component::Data))(
                missing,
            ));
        }
        Ok(Files {
            io,
            mode,
            descriptor,
            findings,
            list,
        })
    }

    pub(crate) fn has(&self, component: Component) -> bool {
        self.list.has(component)
    }

    /// Bytes of all components.
    pub(crate) fn total_len(&self) -> u64 {
        self.list.total_len()
    }

    fn read(&self, component: Component) -> Result<Option<Vec<u8>>> {
        if !self.has(component) {
            return Ok(None);
        }
        Ok(Some(read_small(
            self.io,
            self.mode,
            &self.descriptor.path(component),
        )?))
    }

    /// Reads and parses a component; a parser error becomes a finding.
    fn parse<T>(
        &self,
        component: Component,
        parser: impl FnOnce(&[u8]) -> compactor_sstable::Result<T>,
    ) -> Result<Option<T>> {
        let Some(bytes) = self.read(component)? else {
            return Ok(None);
        };
        match parser(&bytes) {
            Ok(parsed) => Ok(Some(parsed)),
            Err(error) => {
                self.findings.parser(component, &error);
                Ok(None)
            }
        }
    }

    /// Checks the existing files against `TOC.txt` and the required components. `fp_chance` is the filter's false
    /// positive chance in `Statistics.db`.
    pub(crate) fn check_list(&self, fp_chance: Option<f64>) -> Result<()> {
        let len = self.list.len_of(Component::Toc).unwrap_or(0);
        let toc = match Toc::check_len(len) {
            Ok(()) => self.parse(Component::Toc, Toc::parse)?,
            Err(error) => {
                self.findings.parser(Component::Toc, &error);
                None
            }
        };
        for finding in self.list.check(self.descriptor, toc.as_ref(), fp_chance) {
            let severity = if finding.is_damage {
                Severity::Damage
            } else {
                Severity::Note
            };
            let place = Location::of(finding.component);
            let (expected, found) = (finding.expected, finding.found);
            self.findings
                .add(severity, place, finding.structure, expected, found);
        }
        Ok(())
    }

    pub(crate) fn statistics(&self) -> Result<Option<Statistics>> {
        let version = self.descriptor.version;
        let mut statistics = self.parse(Component::Statistics, |bytes| {
            Statistics::parse(bytes, version)
        })?;
        if let Some(statistics) = &mut statistics {
            freeze_user_types(self.io, self.mode, self.descriptor, statistics)?;
        }
        Ok(statistics)
    }

    /// Reads the filter; `fp_chance` is that of the statistics.
    pub(crate) fn filter(&self, fp_chance: Option<f64>) -> Result<Option<BloomFilter>> {
        let version = self.descriptor.version;
        let filter = self.parse(Component::Filter, |bytes| {
            BloomFilter::parse(bytes, version)
        })?;
        if filter.as_ref().is_some_and(|f| f.hash_count() == 0) {
            // Cassandra takes an empty file for a filter that lets everything pass. For tables
            // without filters it writes none at all.
            let severity = match fp_chance {
                Some(1.0) => Severity::Note,
                _ => Severity::Damage,
            };
            self.findings.add(
                severity,
                Location::offset(Component::Filter, 0),
                "filter",
                "a Bloom filter over the partition keys",
                "an empty file",
            );
        }
        Ok(filter)
    }

    pub(crate) fn summary(&self) -> Result<Option<Summary>> {
        let version = self.descriptor.version;
        let summary = self.parse(Component::Summary, |bytes| Summary::parse(bytes, version))?;
        if let Some(summary) = &summary
            && summary.sampling_level > BASE_SAMPLING_LEVEL
        {
            self.findings.damage(
                Location::offset(Component::Summary, 16),
                "summary.sampling_level",
                format!("1 to {BASE_SAMPLING_LEVEL}"),
                summary.sampling_level.to_string(),
            );
            return Ok(None);
        }
        Ok(summary)
    }

    /// Reads the tries of a BTI index, which may be shared; `None` for BIG, or if one is missing.
    pub(crate) fn tries(&self, shared: &SharedTries) -> Result<Option<Arc<TrieFiles>>> {
        let is_bti = self.descriptor.version.format() == Format::Bti;
        if !is_bti || !self.has(Component::Partitions) || !self.has(Component::Rows) {
            return Ok(None);
        }
        Ok(Some(shared.read(self.io, self.mode, self.descriptor)?))
    }

    pub(crate) fn digest(&self) -> Result<Option<u32>> {
        self.parse(Component::Digest, digest::parse)
    }

    pub(crate) fn compression_info(&self, data_file_len: u64) -> Result<Option<CompressionInfo>> {
        let Some(bytes) = self.read(Component::CompressionInfo)? else {
            return Ok(None);
        };
        let parse = |len| CompressionInfo::parse(&bytes, self.descriptor.version, len);
        let error = match parse(data_file_len) {
            Ok(info) => {
                if info.unread_len > 0 {
                    let end = (bytes.len() - info.unread_len) as u64;
                    let place = Location::offset(Component::CompressionInfo, end);
                    let found = format!(
                        "{} more bytes, which Cassandra does not read",
                        info.unread_len
                    );
                    self.findings
                        .note(place, "compression_info.end", "the end of the file", found);
                }
                if let Some(odd) = info.params.odd_max_compressed_len() {
                    self.findings.ignored_by_merge(
                        Location::of(Component::CompressionInfo),
                        "compression_info.max_compressed_length",
                        format!(
                            "at most the chunk length {}, or none",
                            info.params.chunk_len
                        ),
                        odd.to_string(),
                    );
                }
                return Ok(Some(info));
            }
            Err(error) => error,
        };
        // If only the length of Data.db is wrong, the existing chunks can still be checked.
        if let Some(needed) = end_of_last_chunk(&bytes).filter(|&needed| needed > data_file_len)
            && let Ok(info) = parse(needed)
        {
            self.findings.damage(
                Location::offset(Component::Data, data_file_len),
                "data.length",
                format!("at least {needed} bytes: CompressionInfo.db has the last chunk there"),
                format!("{data_file_len} bytes"),
            );
            return Ok(Some(info));
        }
        self.findings.parser(Component::CompressionInfo, &error);
        Ok(None)
    }

    pub(crate) fn crc_file(&self, data_file_len: u64) -> Result<Option<CrcFile>> {
        let Some(bytes) = self.read(Component::Crc)? else {
            return Ok(None);
        };
        match CrcFile::parse(&bytes, data_file_len) {
            Ok(crc) => Ok(Some(crc)),
            Err(error) => {
                self.findings.parser(Component::Crc, &error);
                Ok(CrcFile::parse_start(&bytes, data_file_len))
            }
        }
    }
}

/// The SSTable whose `Data.db` is `data_path`. `does` is what this release does with the versions that it reads.
///
/// # Errors
/// A path that is not an SSTable's, or a version that this release does not read.
pub(crate) fn readable(data_path: &Path, does: &str) -> Result<Descriptor> {
    let descriptor = parse_data_name(data_path)?;
    refuse_link_without_sidecars(&descriptor, Component::Statistics)?;
    if READABLE.contains(&descriptor.version) {
        return Ok(descriptor);
    }
    let what = format!(
        "SSTable version {}; this release {does} {}",
        descriptor.version,
        READABLE.map(Version::name).join(", ")
    );
    let refused = FormatError::unsupported(what);
    Err(refused
        .with_file(&descriptor.path(Component::Data), Component::Data)
        .into())
}

/// The filter's false positive chance according to `Statistics.db`, if that can be read.
pub(crate) fn fp_chance(statistics: Option<&Statistics>) -> Option<f64> {
    statistics.map(|statistics| statistics.validation.bloom_filter_fp_chance)
}

/// Returns the minimum length of Data.db: the last chunk offset in CompressionInfo.db plus a byte and a checksum.
fn end_of_last_chunk(compression_info: &[u8]) -> Option<u64> {
    let offset = u64::from_be_bytes(*compression_info.last_chunk::<8>()?);
    offset.checked_add(1 + CRC_LEN as u64)
}
