//! Checks of the partition index and `Filter.db` in lockstep with the partitions of `Data.db`: each key must be in
//! both, and each index entry must point to its partition.

use compactor_engine::merge::Observer;
use compactor_io::IoError;
use compactor_sstable::partitioner::KeyHash;

use super::finding::{Findings, Location};
use super::keys::FilterCheck;
use super::partition_scan::PartitionScan;
use super::short_hex;
use crate::Error;
use crate::cancellation::check_cancelled;

/// Lockstep check of index and filter.
#[derive(Debug)]
pub(super) struct Lockstep<'a> {
    findings: &'a Findings,
    /// Index, `None` while the caller uses it for one partition.
    pub(super) index: Option<PartitionScan<'a>>,
    filter: Option<FilterCheck>,
    /// Number of entries of partitions that were not read.
    pub(super) skipped: u64,
}

impl<'a> Lockstep<'a> {
    pub(super) fn new(
        findings: &'a Findings,
        index: Option<PartitionScan<'a>>,
        filter: Option<FilterCheck>,
    ) -> Lockstep<'a> {
        Lockstep {
            findings,
            index,
            filter,
            skipped: 0,
        }
    }

    /// Moves to the next entry, at the beginning the first; false if there is none.
    pub(super) fn advance(&mut self) -> Result<bool, IoError> {
        match &mut self.index {
            Some(index) => index.advance(),
            None => Ok(false),
        }
    }

    /// Checks that the filter contains a key of the data.
    pub(super) fn key(&mut self, hash: &KeyHash, partition: &str) {
        if let Some(filter) = &mut self.filter {
            filter.key(self.findings, hash, || partition.to_owned());
        }
    }

    /// Advances the index to the entry of the partition with `key` at `start`. Returns false if there is none.
    /// `partition` is the text of the key.
    pub(super) fn find(
        &mut self,
        key: &[u8],
        hash: &KeyHash,
        start: u64,
        partition: &str,
        observer: &dyn Observer,
    ) -> Result<bool, Error> {
        let Some(index) = &mut self.index else {
            return Ok(false);
        };
        loop {
            // There may be very many invalid entries.
            check_cancelled(observer)?;
            let Some(position) = index.position() else {
                if index.is_complete() {
                    self.findings.damage(
                        Location::of(index.component()).in_partition(partition),
                        "index.entry",
                        format!("an entry for the partition at position {start}"),
                        format!("{} entries, none for it", index.count()),
                    );
                }
                return Ok(false);
            };
            let place = index.place();
            if index.is_of(key, hash) {
                if position != start {
                    self.findings.damage(
                        place.in_partition(partition),
                        "index.position",
                        start.to_string(),
                        position.to_string(),
                    );
                }
                return Ok(true);
            }
            if position == start {
                let (place, found) = index.other_key(key);
                self.findings.damage(
                    place,
                    "index.key",
                    format!("{}, the key at position {start}", short_hex(key)),
                    found,
                );
                return Ok(true);
            }
            if position > start {
                self.findings.damage(
                    place.in_partition(partition),
                    "index.entry",
                    format!("an entry for the partition at position {start}"),
                    format!("one for {position}"),
                );
                return Ok(false);
            }
            leads_nowhere(self.findings, place, position);
            index.advance()?;
        }
    }

    /// Skips the entries of partitions that begin before `from`. Returns the position of the next one, if it is
    /// within the data.
    pub(super) fn skip_to(
        &mut self,
        from: u64,
        data_len: u64,
        observer: &dyn Observer,
    ) -> Result<Option<u64>, Error> {
        while let Some(position) = self.index.as_ref().and_then(PartitionScan::position) {
            check_cancelled(observer)?;
            if position >= from {
                return Ok((position < data_len).then_some(position));
            }
            self.skip()?;
        }
        Ok(None)
    }

    /// Reports entries after the last partition read, whose partitions do not exist, unless the data could not be
    /// read to its end.
    pub(super) fn finish(
        &mut self,
        is_interrupted: bool,
        observer: &dyn Observer,
    ) -> Result<(), Error> {
        while let Some(index) = &self.index
            && let Some(position) = index.position()
        {
            check_cancelled(observer)?;
            if is_interrupted {
                self.skip()?;
            } else {
                leads_nowhere(self.findings, index.place(), position);
                self.advance()?;
            }
        }
        Ok(())
    }

    /// Checks the next index entry alone, its key against the filter, if the data cannot be read.
    pub(super) fn next_alone(&mut self) -> Result<bool, IoError> {
        if !self.advance()? {
            return Ok(false);
        }
        self.check_entry_key();
        Ok(true)
    }

    fn skip(&mut self) -> Result<(), IoError> {
        self.skipped += 1;
        self.check_entry_key();
        self.advance().map(drop)
    }

    fn check_entry_key(&mut self) {
        if let (Some(filter), Some(index)) = (&mut self.filter, &self.index)
            && let Some(hash) = index.key_hash()
        {
            filter.key(self.findings, &hash, || index.describe());
        }
    }

    /// Checks summary and filter as a whole, once the files have been read. `has_all_keys`: all keys of the data were
    /// seen.
    pub(super) fn check_whole(&mut self, has_all_keys: bool, fp_chance: Option<f64>) {
        let mut has_all_keys = has_all_keys;
        if let Some(index) = &self.index {
            index.finish();
            has_all_keys |= index.has_keys()
                && index.is_complete()
                && !self.findings.is_damaged(index.component());
        }
        if let Some(filter) = &mut self.filter {
            filter.finish(self.findings, has_all_keys, fp_chance);
        }
    }
}

pub(super) fn leads_nowhere(findings: &Findings, place: Location, position: u64) {
    findings.damage(
        place,
        "index.entry",
        "entries of partitions that Data.db holds",
        format!("one for position {position}, where none begins"),
    );
}
