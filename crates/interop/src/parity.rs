//! Byte parity: for the same inputs, options, clock and version our SSTable is the one that Cassandra's iterator pipeline
//! writes.
//!
//! | Component | Compared |
//! |---|---|
//! | `Data.db` | its uncompressed content, to the byte; the file too where it is not compressed |
//! | `Index.db` and `Summary.db`, or `Partitions.db` and `Rows.db` | to the byte |
//! | `Filter.db` | to the byte |
//! | `Statistics.db` | to the byte, but for the compression ratio |
//! | `CompressionInfo.db` | to the byte, but for the positions of the chunks |
//! | `Digest.crc32`, `CRC.db` | to the byte where `Data.db` is not compressed |
//! | `TOC.txt` | the same lines, in any order |
//! | any other | must not exist |
//!
//! Permitted differences and their reasons:
//!
//! - **Lengths of compressed chunks**, always where there is compression: two encoders do not find the same matches, and
//!   each result decodes to the same bytes. That is the compressed `Data.db` and its digest, the chunks' positions in
//!   `CompressionInfo.db`, and the compression ratio in `Statistics.db`.
//! - **The empty chunk at the end**, always: Cassandra's output has it because it was opened early, before it was finished.
//!   That is a position in `CompressionInfo.db`, or a checksum in `CRC.db`.
//! - **The order of lines in `TOC.txt`**, always: Cassandra's is that of a hash set.
//! - What a test allows by an [`Exception`], with its reason.
//!
//! The generator of random tables avoids three more, where Cassandra's own result varies, or where it cannot read what
//! it wrote: row deletions at the timestamp of a shadowable one, range tombstones with a negative timestamp in a
//! promoted index of BIG, and files whose least deletion time is after 2038.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use compactor_sstable::compression::crc_file::CrcFile;
use compactor_sstable::compression::crc32;
use compactor_sstable::compression::info::CompressionInfo;
use compactor_sstable::statistics::{IntervalSet, Statistics};
use compactor_sstable::version::Version;
use serde_json::Value;

use crate::cassandra::{Cassandra, Table};
use crate::compare;
use crate::files::{self, component, components};

const STATISTICS: &str = "Statistics.db";

/// A reason why some of the bytes are not compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exception {
    /// Cassandra keeps commit log intervals and host id of inputs that its own node wrote and drops those of others;
    /// compactor does not know on whose node it runs. Both fields of `Statistics.db` may differ.
    ForeignInputs,
    /// Our output is compressed like the newest input or as requested, Cassandra's like the table. `CompressionInfo.db`
    /// and compressed lengths are not compared.
    OwnCompression,
    /// Data that a node adds to SSTables: components of attached indexes, which it rebuilds, and the level, which a
    /// leveled table assigns to its outputs. Neither is compared.
    NodesOwn,
    /// Cassandra before 5.0 counts cells of partitions with five buckets fewer; ours are those of 5.0 and 6.0 in `nb`
    /// too. `Statistics.db` is compared by fields, not bytes.
    OtherBuckets,
}

/// Reader of what cannot be compared as files.
pub(crate) trait Reader {
    /// The uncompressed content of Data.db.
    fn content(&mut self, data: &Path) -> Result<Vec<u8>>;
    /// Every field of Statistics.db, by name.
    fn metadata(&mut self, data: &Path) -> Result<Value>;
}

/// A Cassandra that has the table.
struct Server<'a>(&'a mut Cassandra, &'a Table);

impl Reader for Server<'_> {
    fn content(&mut self, data: &Path) -> Result<Vec<u8>> {
        self.0.content(self.1, data)
    }

    fn metadata(&mut self, data: &Path) -> Result<Value> {
        self.0.metadata(self.1, data)
    }
}

/// Returns the differences between our SSTable and Cassandra's.
///
/// # Errors
/// A component that cannot be read.
pub fn differences(
    cassandra: &mut Cassandra,
    table: &Table,
    theirs: &Path,
    ours: &Path,
    granted: &[Exception],
) -> Result<Vec<String>> {
    let version = cassandra.mode().version().parse()?;
    let mut server = Server(cassandra, table);
    differences_by(&mut server, version, theirs, ours, granted)
}

/// As [`differences`], with another reader.
pub(crate) fn differences_by(
    reader: &mut impl Reader,
    version: Version,
    theirs: &Path,
    ours: &Path,
    granted: &[Exception],
) -> Result<Vec<String>> {
    let both = Both {
        theirs,
        ours,
        version,
        granted,
    };
    let mut found = Vec::new();
    both.names(&mut found)?;
    for name in [
        "Filter.db",
        "Index.db",
        "Summary.db",
        "Partitions.db",
        "Rows.db",
    ] {
        both.same_bytes(name, &mut found)?;
    }
    let content = (reader.content(theirs)?, reader.content(ours)?);
    found.extend(bytes("Data.db, uncompressed", &content.0, &content.1));
    if !both.is_compressed() {
        for name in ["Data.db", "Digest.crc32"] {
            both.same_bytes(name, &mut found)?;
        }
        found.extend(both.checksums()?);
    }
    if !both.is_granted(Exception::OwnCompression) {
        found.extend(both.compression()?);
    }
    found.extend(both.statistics(reader)?);
    Ok(found)
}

struct Both<'a> {
    theirs: &'a Path,
    ours: &'a Path,
    version: Version,
    granted: &'a [Exception],
}

/// Whether the checksums of empty chunks are right, which no reader of the content checks.
fn are_empty_chunks_sound(info: &CompressionInfo, data: &[u8]) -> bool {
    let starts = info.chunk_offsets.iter().skip(info.chunk_count());
    let ends = starts.clone().skip(1).chain([&info.file_len]);
    starts.zip(ends).all(|(start, end)| {
        let stored = data.get(*start as usize..*end as usize);
        stored
            .and_then(<[u8]>::split_last_chunk::<4>)
            .is_some_and(|(chunk, crc)| crc32(chunk) == u32::from_be_bytes(*crc))
    })
}

impl Both<'_> {
    fn is_granted(&self, exception: Exception) -> bool {
        self.granted.contains(&exception)
    }

    fn is_compressed(&self) -> bool {
        let is = |data| component(data, "CompressionInfo.db").exists();
        is(self.theirs) || is(self.ours)
    }

    /// Compares the lists of existing files, and those in TOC.txt.
    fn names(&self, found: &mut Vec<String>) -> Result<()> {
        let is_expected = |name: &String| {
            let is_compression = ["CompressionInfo.db", "CRC.db"].contains(&name.as_str());
            let is_index = name.starts_with("SAI+") || name.starts_with("SI_");
            !(self.is_granted(Exception::OwnCompression) && is_compression
                || self.is_granted(Exception::NodesOwn) && is_index)
        };
        for list in [components, toc] {
            let names = |data| anyhow::Ok(BTreeSet::from_iter(list(data)?));
            let (theirs, ours) = (names(self.theirs)?, names(self.ours)?);
            let differing = theirs.symmetric_difference(&ours);
            for name in differing.filter(|name| is_expected(name)) {
                found.push(format!("{name} is there, or in TOC.txt, on one side only"));
            }
        }
        Ok(())
    }

    fn same_bytes(&self, name: &str, found: &mut Vec<String>) -> Result<()> {
        let (theirs, ours) = (component(self.theirs, name), component(self.ours, name));
        if theirs.exists() && ours.exists() {
            found.extend(bytes(name, &fs::read(theirs)?, &fs::read(ours)?));
        }
        Ok(())
    }

    /// Compares CRC.db without checksums of empty chunks.
    fn checksums(&self) -> Result<Option<String>> {
        const NAME: &str = "CRC.db";
        let mut both = Vec::new();
        for data in [self.theirs, self.ours] {
            let file = component(data, NAME);
            if !file.exists() {
                return Ok(None);
            }
            let mut checksums = Vec::new();
            CrcFile::parse(&fs::read(file)?, fs::metadata(data)?.len())?.write(&mut checksums);
            both.push(checksums);
        }
        Ok(bytes(NAME, &both[0], &both[1]))
    }

    /// Compares CompressionInfo.db, except the positions of chunks.
    fn compression(&self) -> Result<Option<String>> {
        let mut both = Vec::new();
        for data in [self.theirs, self.ours] {
            let Some(info) = files::compression(data, self.version)? else {
                return Ok(None);
            };
            let lengths = (info.data_len, info.chunk_count());
            let sound = are_empty_chunks_sound(&info, &fs::read(data)?);
            both.push(format!(
                "{:?}, length and chunks {lengths:?}, empty chunks after them sound: {sound}",
                info.params
            ));
        }
        let (expected, found) = (&both[0], &both[1]);
        let difference = || format!("CompressionInfo.db: expected {expected}, found {found}");
        Ok((expected != found).then(difference))
    }

    fn statistics(&self, reader: &mut impl Reader) -> Result<Vec<String>> {
        let (expected, found) = (
            self.comparable_statistics(self.theirs)?,
            self.comparable_statistics(self.ours)?,
        );
        let mut differences = Vec::new();
        if !self.is_granted(Exception::OtherBuckets) {
            differences.extend(bytes(STATISTICS, &expected, &found));
            if differences.is_empty() {
                return Ok(differences);
            }
        }
        // Compare by fields.
        let allowed = self.allowed_statistics();
        let mut both = Vec::new();
        for data in [self.theirs, self.ours] {
            let mut metadata = reader.metadata(data)?;
            if let Some(stats) = metadata["stats"].as_object_mut() {
                stats.retain(|name, _| !allowed.contains(&name.as_str()));
            }
            if let Some(all) = metadata.as_object_mut() {
                all.retain(|name, _| name != "compression");
            }
            both.push(metadata);
        }
        compare::json(STATISTICS, &both[0], &both[1], &mut differences);
        Ok(differences)
    }

    /// Fields of the STATS component that may differ.
    fn allowed_statistics(&self) -> Vec<&'static str> {
        let mut allowed = Vec::new();
        if self.is_compressed() {
            allowed.push("compression_ratio");
        }
        if self.is_granted(Exception::ForeignInputs) {
            allowed.extend(["originating_host_id", "commit_log_intervals"]);
        }
        allowed
    }

    /// Statistics.db, rewritten without fields that may differ.
    fn comparable_statistics(&self, data: &Path) -> Result<Vec<u8>> {
        let mut bytes = fs::read(component(data, STATISTICS)).context(STATISTICS)?;
        let is_foreign = self.is_granted(Exception::ForeignInputs);
        let is_of_node = self.is_granted(Exception::NodesOwn);
        if is_foreign || is_of_node {
            let mut statistics = Statistics::parse(&bytes, self.version)?;
            if is_foreign {
                // As in an SSTable whose data no node's commit log held.
                statistics.stats.originating_host_id = None;
                statistics.stats.commit_log_intervals = IntervalSet::default();
            }
            if is_of_node {
                statistics.stats.level = 0;
            }
            bytes.clear();
            statistics.write(&mut bytes, self.version)?;
        }
        if self.is_compressed() {
            mask_ratio(&mut bytes)?;
        }
        Ok(bytes)
    }
}

/// Zeroes the compression ratio, and the checksum that covers it.
///
/// That is `i32 4 | crc | 4 * (i32 type, i32 offset) | crc`, and at the third offset two histograms (`i32 n | n * (i64,
/// i64)`), a position in the commit log (12 bytes), two timestamps, two deletion times, two TTLs, and the ratio.
fn mask_ratio(statistics: &mut [u8]) -> Result<()> {
    let number = |at: usize| -> Result<usize> {
        let bytes = statistics.get(at..at + 4).context("a number")?;
        Ok(u32::from_be_bytes(bytes.try_into()?) as usize)
    };
    let mut ratio = number(8 + 2 * 8 + 4)?;
    let checksum = number(8 + 3 * 8 + 4)? - 4;
    for _histogram in 0..2 {
        ratio += 4 + 16 * number(ratio)?;
    }
    ratio += 12 + 2 * 8 + 2 * 4 + 2 * 4;
    for place in [ratio..ratio + 8, checksum..checksum + 4] {
        let place = statistics
            .get_mut(place)
            .context("Statistics.db is too short")?;
        place.fill(0);
    }
    Ok(())
}

/// Describes the first difference of two files.
fn bytes(name: &str, expected: &[u8], found: &[u8]) -> Option<String> {
    if expected == found {
        return None;
    }
    let at = expected
        .iter()
        .zip(found)
        .take_while(|(a, b)| a == b)
        .count();
    let shown = |bytes: &[u8]| {
        let end = bytes.len().min(at + 16);
        format!("{:02x?} of {} bytes", &bytes[at..end], bytes.len())
    };
    Some(format!(
        "{name} at byte {at}: expected {}, found {}",
        shown(expected),
        shown(found)
    ))
}

/// Lines of TOC.txt.
fn toc(data: &Path) -> Result<Vec<String>> {
    let text = fs::read_to_string(component(data, "TOC.txt"))?;
    Ok(text.lines().map(str::to_owned).collect())
}
