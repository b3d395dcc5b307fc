//! Which components there are, and the small ones among them, parsed.

use std::io;
use std::path::Path;

use compactor_engine::input::read_small;
use compactor_io::{Io, ReadMode};
use compactor_sstable::Component;
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

use super::finding::{Findings, Place};
use crate::error::{Error, Result};

/// Bounds of the chunk size in `CRC.db`, the buffer of Cassandra's writer: 64 KiB, unless someone
/// built it otherwise.
const CRC_CHUNK_LEN: std::ops::RangeInclusive<u32> = 4096..=(16 << 20);

/// The components of one SSTable.
pub(super) struct Files<'a> {
    io: &'a Io,
    mode: ReadMode,
    descriptor: &'a Descriptor,
    findings: &'a Findings,
    present: Vec<(Component, u64)>,
    foreign: Vec<String>,
}

impl<'a> Files<'a> {
    /// Looks which components exist.
    pub(super) fn list(
        io: &'a Io,
        mode: ReadMode,
        descriptor: &'a Descriptor,
        findings: &'a Findings,
    ) -> Result<Files<'a>> {
        let directory = if descriptor.directory.as_os_str().is_empty() {
            Path::new(".")
        } else {
            &descriptor.directory
        };
        let mut files = Files {
            io,
            mode,
            descriptor,
            findings,
            present: Vec::new(),
            foreign: Vec::new(),
        };
        for component in Component::ALL {
            let path = descriptor.path(component);
            match std::fs::metadata(&path) {
                Ok(metadata) => files.present.push((component, metadata.len())),
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) => return Err(Error::file("look up", path)(e)),
            }
        }
        if files.present.is_empty() {
            let missing = io::Error::from(io::ErrorKind::NotFound);
            return Err(Error::file("open", descriptor.path(Component::Data))(
                missing,
            ));
        }
        let prefix = format!("{}-", descriptor.base_name());
        for entry in std::fs::read_dir(directory).map_err(Error::file("list", directory))? {
            let name = entry.map_err(Error::file("list", directory))?.file_name();
            if let Some(suffix) = name.to_str().and_then(|n| n.strip_prefix(&prefix))
                && Component::from_file_suffix(suffix).is_none()
            {
                files.foreign.push(suffix.to_owned());
            }
        }
        Ok(files)
    }

    pub(super) fn has(&self, component: Component) -> bool {
        self.present.iter().any(|(c, _)| *c == component)
    }

    /// Bytes of all components.
    pub(super) fn total_len(&self) -> u64 {
        self.present.iter().map(|(_, len)| len).sum()
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

    /// Reads and parses a component; what the parser says is a finding.
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

    fn missing(&self, component: Component, why: &str) {
        let expected = format!("a file {component}, {why}");
        self.findings
            .damage(Place::of(component), "sstable", expected, "no such file");
    }

    /// `TOC.txt` against the files there are; components that no SSTable is without.
    pub(super) fn check_list(&self) -> Result<()> {
        for required in [Component::Data, Component::Index, Component::Statistics] {
            if !self.has(required) {
                self.missing(required, "without which there is no SSTable");
            }
        }
        if !self.has(Component::Toc) {
            // Cassandra makes a new one, but it is written last: the SSTable may be incomplete.
            self.missing(
                Component::Toc,
                "which tells what other files there should be",
            );
            return Ok(());
        }
        let Some(toc) = self.parse(Component::Toc, |bytes| {
            let odd = bytes
                .iter()
                .position(|b| !b.is_ascii_graphic() && !b" \r\n".contains(b));
            if let Some(at) = odd {
                self.findings.damage(
                    Place::offset(Component::Toc, at as u64),
                    "toc",
                    "names of components, one a line",
                    format!("byte {:02x}", bytes[at]),
                );
            }
            Toc::parse(bytes)
        })?
        else {
            return Ok(());
        };
        let why = "which TOC.txt lists";
        for listed in toc.components() {
            if !self.has(listed)
                && ![Component::Data, Component::Index, Component::Statistics].contains(&listed)
            {
                self.missing(listed, why);
            }
        }
        for listed in toc.unknown() {
            if !self.foreign.iter().any(|name| name == listed) {
                self.findings.damage(
                    Place::of(Component::Toc),
                    "toc",
                    format!("a file {}", self.descriptor.file_name_of(listed)),
                    "no such file",
                );
            }
        }
        for &(present, _) in &self.present {
            if toc.contains(present) {
                continue;
            }
            let expected = format!("a line {present}, since that file exists");
            let found = toc.names.join(", ");
            let place = Place::of(Component::Toc);
            if [Component::Filter, Component::Summary].contains(&present) {
                // Cassandra may have built them anew after it had written the list.
                self.findings.note(place, "toc", expected, found);
            } else {
                self.findings.damage(place, "toc", expected, found);
            }
        }
        if !self.has(Component::Digest) && !toc.contains(Component::Digest) {
            self.absent(Component::Digest, "against which Data.db can be checked");
        }
        if !self.has(Component::Summary) && !toc.contains(Component::Summary) {
            self.absent(
                Component::Summary,
                "which Cassandra builds anew when it opens the table",
            );
        }
        Ok(())
    }

    fn absent(&self, component: Component, why: &str) {
        let expected = format!("a file {component}, {why}");
        self.findings.note(
            Place::of(component),
            "sstable",
            expected,
            "none, nor does TOC.txt list it",
        );
    }

    pub(super) fn statistics(&self) -> Result<Option<Statistics>> {
        let version = self.descriptor.version;
        self.parse(Component::Statistics, |bytes| {
            Statistics::parse(bytes, version)
        })
    }

    /// The filter; a missing one is a note, unless the statistics say that there is none.
    pub(super) fn filter(&self, fp_chance: Option<f64>) -> Result<Option<BloomFilter>> {
        if !self.has(Component::Filter)
            && fp_chance.is_some_and(|chance| chance != 1.0)
            && !self.findings.is_damaged(Component::Filter)
        {
            self.absent(
                Component::Filter,
                "which Cassandra builds anew when it opens the table",
            );
        }
        let version = self.descriptor.version;
        self.parse(Component::Filter, |bytes| {
            BloomFilter::parse(bytes, version)
        })
    }

    pub(super) fn summary(&self) -> Result<Option<Summary>> {
        let summary = self.parse(Component::Summary, Summary::parse)?;
        if let Some(summary) = &summary
            && summary.sampling_level > BASE_SAMPLING_LEVEL
        {
            self.findings.damage(
                Place::offset(Component::Summary, 16),
                "summary.sampling_level",
                format!("1 to {BASE_SAMPLING_LEVEL}"),
                summary.sampling_level.to_string(),
            );
            return Ok(None);
        }
        Ok(summary)
    }

    pub(super) fn digest(&self) -> Result<Option<u32>> {
        self.parse(Component::Digest, digest::parse)
    }

    pub(super) fn compression_info(&self, data_file_len: u64) -> Result<Option<CompressionInfo>> {
        let Some(bytes) = self.read(Component::CompressionInfo)? else {
            return Ok(None);
        };
        let parse = |len| CompressionInfo::parse(&bytes, self.descriptor.version, len);
        let error = match parse(data_file_len) {
            Ok(info) => return Ok(Some(info)),
            Err(error) => error,
        };
        // If all is well but for the length of Data.db, the chunks that are there can be checked.
        if let Some(needed) = end_of_last_chunk(&bytes).filter(|&needed| needed > data_file_len)
            && let Ok(info) = parse(needed)
        {
            self.findings.damage(
                Place::offset(Component::Data, data_file_len),
                "data.length",
                format!("at least {needed} bytes: CompressionInfo.db has the last chunk there"),
                format!("{data_file_len} bytes"),
            );
            return Ok(Some(info));
        }
        self.findings.parser(Component::CompressionInfo, &error);
        Ok(None)
    }

    pub(super) fn crc_file(&self, data_file_len: u64) -> Result<Option<CrcFile>> {
        let Some(bytes) = self.read(Component::Crc)? else {
            if !self.findings.is_damaged(Component::Crc) {
                self.absent(
                    Component::Crc,
                    "with the checksums of an uncompressed Data.db",
                );
            }
            return Ok(None);
        };
        let crc = match CrcFile::parse(&bytes, data_file_len) {
            Ok(crc) => crc,
            Err(error) => {
                self.findings.parser(Component::Crc, &error);
                // Those of the chunks that are there may be right.
                let whole = covered_by_checksums(&bytes);
                match whole.map(|len| CrcFile::parse(&bytes, len)) {
                    Some(Ok(crc)) => crc,
                    _ => return Ok(None),
                }
            }
        };
        if CRC_CHUNK_LEN.contains(&crc.chunk_len) && crc.chunk_len.is_power_of_two() {
            return Ok(Some(crc));
        }
        self.findings.damage(
            Place::offset(Component::Crc, 0),
            "crc.chunk_size",
            "a power of two, the length of a writer's buffer",
            crc.chunk_len.to_string(),
        );
        Ok(None)
    }
}

/// The least length of Data.db for the last chunk offset in CompressionInfo.db: a byte and a
/// checksum more.
fn end_of_last_chunk(compression_info: &[u8]) -> Option<u64> {
    let offset = u64::from_be_bytes(*compression_info.last_chunk::<8>()?);
    offset.checked_add(1 + CRC_LEN as u64)
}

/// The length of data that the checksums in CRC.db cover, if the last chunk is whole.
fn covered_by_checksums(crc_file: &[u8]) -> Option<u64> {
    let (chunk_len, checksums) = crc_file.split_first_chunk::<4>()?;
    let chunk_len = u64::from(u32::from_be_bytes(*chunk_len));
    chunk_len.checked_mul(checksums.len() as u64 / CRC_LEN as u64)
}
