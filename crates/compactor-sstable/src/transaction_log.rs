//! Log of a transaction that adds SSTables to a directory and removes others from it.
//!
//! ```text
//! oa_txn_compaction_<version-1 UUID>.log     BIG: the version
//! bti-da_txn_compaction_<version-1 UUID>.log others: format and version
//!
//! ADD:[/directory/oa-3-big-,0,8][1521711277]      path before the component, 0, number of components
//! REMOVE:[/directory/oa-1-big-,1795245389000,8][3560166879]  the same, last change in milliseconds
//! COMMIT:[,0,0][2613697770]                       or ABORT
//! ```
//!
//! The number in the last brackets is the CRC-32 of the path, the type and the two numbers. If an abandoned
//! log does not end in COMMIT, the added SSTables must be deleted; otherwise, the removed ones. Then the log
//! is deleted as well.
//!
//! Source: `LogFile`, `LogRecord`.

use crate::error::{Error, Result};
use crate::version::{Format, Version};

/// Type of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordKind {
    /// An SSTable that is being added.
    Add,
    /// An SSTable that is removed when the transaction is committed.
    Remove,
    /// The transaction is complete; the last record.
    Commit,
    /// The transaction has been aborted; the last record.
    Abort,
}

impl RecordKind {
    const NAMES: [(RecordKind, &str); 4] = [
        (RecordKind::Add, "ADD"),
        (RecordKind::Remove, "REMOVE"),
        (RecordKind::Commit, "COMMIT"),
        (RecordKind::Abort, "ABORT"),
    ];

    fn name(self) -> &'static str {
        RecordKind::NAMES[self as usize].1
    }
}

/// A line of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Type.
    pub kind: RecordKind,
    /// Path of the SSTable's files up to and including the last `-`. Empty for the last record.
    pub path: String,
    /// Time of the last change of its files, milliseconds since 1970; only for a removed SSTable.
    pub update_time_ms: i64,
    /// Number of its components.
    pub components: i32,
}

impl Record {
    /// Creates the record of an SSTable being added. Control characters in the path, which could end the
    /// line, are replaced by `?`.
    pub fn add(path: &str, components: usize) -> Record {
        Record {
            kind: RecordKind::Add,
            path: path.replace(char::is_control, "?"),
            update_time_ms: 0,
            components: i32::try_from(components).unwrap_or(i32::MAX),
        }
    }

    /// Creates the record of an SSTable that is removed by the COMMIT. `update_time_ms` is the time of the
    /// last change of any of its files except `Statistics.db`, which a node may rewrite meanwhile; `files` is
    /// their number. Cassandra deletes nothing if the files were changed at another second
    /// (`LogFile.verifyRecord`).
    pub fn remove(path: &str, update_time_ms: i64, files: usize) -> Record {
        Record {
            kind: RecordKind::Remove,
            update_time_ms,
            ..Record::add(path, files)
        }
    }

    /// Creates the record of a completed transaction.
    pub fn commit() -> Record {
        Record {
            kind: RecordKind::Commit,
            path: String::new(),
            update_time_ms: 0,
            components: 0,
        }
    }

    /// Last part of the path: the common prefix of the SSTable's file names, including the last `-`.
    pub fn file_prefix(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// The record as a line with its end.
    pub fn line(&self) -> String {
        format!(
            "{}:[{},{},{}][{}]\n",
            self.kind.name(),
            self.path,
            self.update_time_ms,
            self.components,
            self.checksum()
        )
    }

    fn checksum(&self) -> u32 {
        let mut crc = crc32fast::Hasher::new();
        crc.update(self.path.as_bytes());
        crc.update(self.kind.name().as_bytes());
        // The lower half comes first.
        crc.update(&(self.update_time_ms as i32).to_be_bytes());
        crc.update(&((self.update_time_ms >> 32) as i32).to_be_bytes());
        crc.update(&self.components.to_be_bytes());
        crc.finalize()
    }

    /// Parses a line without its end. A path may contain commas here, unlike in Cassandra's reader.
    fn parse(line: &str) -> Option<Record> {
        let (name, rest) = line.split_once(":[")?;
        let (body, checksum) = rest.strip_suffix(']')?.rsplit_once("][")?;
        let (body, components) = body.rsplit_once(',')?;
        let (path, update_time_ms) = body.rsplit_once(',')?;
        let record = Record {
            kind: RecordKind::NAMES
                .iter()
                .find(|(_, known)| known.eq_ignore_ascii_case(name))?
                .0,
            path: path.to_owned(),
            update_time_ms: update_time_ms.parse().ok()?,
            components: components.parse().ok()?,
        };
        (record.checksum() == checksum.parse::<u32>().ok()?).then_some(record)
    }
}

/// A parsed log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TransactionLog {
    /// Records in file order.
    pub records: Vec<Record>,
}

impl TransactionLog {
    /// Parses a log. A last line that is not a valid record was being written when its writer was
    /// interrupted, and is ignored.
    ///
    /// # Errors
    /// Corruption if another line is not a valid record, or its checksum is wrong.
    pub fn parse(bytes: &[u8]) -> Result<TransactionLog> {
        let mut log = TransactionLog::default();
        let mut offset = 0;
        while offset < bytes.len() {
            let rest = &bytes[offset..];
            let end = rest.iter().position(|b| *b == b'\n');
            let line = &rest[..end.unwrap_or(rest.len())];
            let next = offset + line.len() + 1;
            match std::str::from_utf8(line).ok().and_then(Record::parse) {
                Some(record) => log.records.push(record),
                None if next >= bytes.len() => break,
                None => {
                    return Err(Error::corrupt(
                        "transaction_log.record",
                        offset as u64,
                        "TYPE:[path,time,components][CRC-32]",
                        String::from_utf8_lossy(&line[..line.len().min(80)]),
                    ));
                }
            }
            offset = next;
        }
        Ok(log)
    }

    /// Whether the last record is COMMIT.
    pub fn is_committed(&self) -> bool {
        self.records
            .last()
            .is_some_and(|record| record.kind == RecordKind::Commit)
    }

    /// Returns the SSTables that must be deleted if the log was abandoned, as in
    /// `LogFile.removeUnfinishedLeftovers`.
    pub fn leftovers(&self) -> impl Iterator<Item = &Record> {
        let kind = if self.is_committed() {
            RecordKind::Remove
        } else {
            RecordKind::Add
        };
        self.records
            .iter()
            .filter(move |record| record.kind == kind)
    }
}

/// Returns the file name of the log of a compaction that writes SSTables of `version`. The UUID's timestamp
/// is in ticks of 100 ns since 1582-10-15.
pub fn file_name(version: Version, ticks: i64, lsb: i64) -> String {
    let format = match version.format() {
        Format::Big => "",
        Format::Bti => "bti-",
    };
    let (ticks, lsb) = (ticks as u64, lsb as u64);
    format!(
        "{format}{}_txn_compaction_{:08x}-{:04x}-1{:03x}-{:04x}-{:012x}.log",
        version.name(),
        ticks & 0xffff_ffff,
        ticks >> 32 & 0xffff,
        ticks >> 48 & 0xfff,
        lsb >> 48,
        lsb & 0xffff_ffff_ffff
    )
}

/// Whether a file of this name is the log of a transaction, for any operation.
pub fn is_file_name(name: &str) -> bool {
    name.ends_with(".log") && name.contains("txn_")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checksums are Cassandra's own.
    const CASSANDRA: &str = "\
        ADD:[/d/ks/t-00000000000000000000000000000000/nb-3-big-,0,8][1521711277]\n\
        REMOVE:[/d/ks/t-00000000000000000000000000000000/nb-1-big-,1795245389000,8][3560166879]\n\
        COMMIT:[,0,0][2613697770]\n";

    #[test]
    fn logs_written_by_cassandra() {
        let log = TransactionLog::parse(CASSANDRA.as_bytes()).unwrap();
        let lines: String = log.records.iter().map(Record::line).collect();
        assert_eq!(lines, CASSANDRA);
        let removed = &log.records[1];
        let again = Record::remove(&removed.path, removed.update_time_ms, 8);
        assert_eq!(&again, removed);
        let leftovers: Vec<_> = log.leftovers().map(Record::file_prefix).collect();
        assert_eq!(leftovers, ["nb-1-big-"]);
        let aborted = CASSANDRA.replace("COMMIT:[,0,0][2613697770]", "ABORT:[,0,0][737437348]");
        let log = TransactionLog::parse(aborted.as_bytes()).unwrap();
        let leftovers: Vec<_> = log.leftovers().map(Record::file_prefix).collect();
        assert_eq!(leftovers, ["nb-3-big-"]);
    }

    fn added() -> Record {
        Record::add("/d/ks/t-1/oa-3-big-", 8)
    }

    #[test]
    fn a_log_is_read_as_it_was_written() {
        let text = added().line() + &Record::add("/a,b/oa-4-big-", 8).line();
        let log = TransactionLog::parse(text.as_bytes()).unwrap();
        assert_eq!(log.leftovers().count(), 2);
        assert!(!log.is_committed());
        assert_eq!(log.records[1].path, "/a,b/oa-4-big-");
        assert_eq!(log.records[1].file_prefix(), "oa-4-big-");

        let committed = text.clone() + &Record::commit().line();
        let log = TransactionLog::parse(committed.as_bytes()).unwrap();
        assert!(log.is_committed());
        assert_eq!(log.leftovers().count(), 0);
        // Truncated within the last record: not committed.
        for end in text.len()..committed.len() - 1 {
            let log = TransactionLog::parse(&committed.as_bytes()[..end]).unwrap();
            assert!(!log.is_committed() && log.records.len() == 2, "{end}");
        }
    }

    #[test]
    fn a_damaged_record_is_an_error_unless_it_is_the_last() {
        let text = added().line() + &Record::commit().line();
        let first = added().line().len();
        for at in 0..first - 1 {
            let mut damaged = text.clone().into_bytes();
            damaged[at] ^= 1;
            let error = TransactionLog::parse(&damaged).unwrap_err();
            assert!(error.to_string().contains("transaction_log.record"), "{at}");
        }
        let mut damaged = text.into_bytes();
        damaged[first + 3] ^= 1;
        assert!(!TransactionLog::parse(&damaged).unwrap().is_committed());
    }

    #[test]
    fn names() {
        let name = file_name(
            Version::Oa,
            0x1e6_c6a1_7cc1_6910,
            0x9d2c_b5d4_e8a1_6a52_u64 as i64,
        );
        assert_eq!(
            name,
            "oa_txn_compaction_7cc16910-c6a1-11e6-9d2c-b5d4e8a16a52.log"
        );
        assert!(is_file_name(&name));
        assert!(
            file_name(Version::Da, 0, 0).starts_with("bti-da_txn_compaction_00000000-0000-1000-")
        );
        assert_eq!(Record::add("/a\nb/oa-1-big-", 1).path, "/a?b/oa-1-big-");
    }
}
