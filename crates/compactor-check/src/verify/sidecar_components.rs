//! Checks of the sidecar components `Index.db`, `Summary.db`, `Filter.db` and `Digest.crc32` against one another,
//! without reading `Data.db`.
//!
//! A merge reads only data and metadata. This pass over the small components runs concurrently, and computes a hash
//! over all keys and positions, which must equal that of the data.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use compactor_engine::input::{SidecarFacts, layout_of, parse_data_name};
use compactor_engine::read::KeyPositionChecksum;
use compactor_io::{Io, ReadMode};
use compactor_sstable::Component;
use compactor_sstable::partitioner::Partitioner;
use compactor_sstable::statistics::{EstimatedHistogram, Statistics};

use super::blocks::BlocksCheck;
use super::files::{Files, fp_chance};
use super::finding::{Finding, Findings, Severity};
use super::index::IndexScan;
use super::keys::{FilterCheck, SummaryCheck};
use super::short_hex;
use super::statistics_consistency;
use crate::{Error, Result};

/// Checks the sidecar components of the `Data.db` at `data_path`, whose content has `data_len` bytes. Also returns
/// the damage that does not stop a merge.
///
/// # Errors
/// The first damage found that stops a merge, a failed read, or cancellation.
pub(crate) fn check(
    io: &Io,
    data_path: &Path,
    data_len: u64,
    mode: ReadMode,
    cancelled: &AtomicBool,
) -> Result<(SidecarFacts, Vec<Finding>)> {
    let descriptor = parse_data_name(data_path)?;
    let findings = Findings::new(descriptor.clone(), 100);
    let mut places = KeyPositionChecksum::default();
    let digest = {
        let files = Files::new(io, mode, &descriptor, &findings)?;
        let statistics = files.statistics()?;
        let fp_chance = fp_chance(statistics.as_ref());
        let filter = files.filter(fp_chance)?;
        let mut filter = filter.map(FilterCheck::new);
        let summary = files.summary()?.map(SummaryCheck::new);
        let layout = match &statistics {
            Some(statistics) => Some(layout_of(&statistics.header, descriptor.version)?),
            None => None,
        };
        let mut blocks = layout.as_ref().map(|l| BlocksCheck::new(&findings, l));
        let mut sizes = statistics
            .as_ref()
            .map(|s| s.stats.partition_sizes.empty_like());
        let file = io.open(&descriptor.path(Component::Index), mode)?;
        let partitioner = match &statistics {
            Some(statistics) => Partitioner::from_class_name(&statistics.validation.partitioner)?,
            None => Partitioner::Murmur3,
        };
        let mut index = IndexScan::open(&findings, &file, Some(data_len), partitioner, summary);
        loop {
            let has_entry = index.advance()?;
            if cancelled.load(Ordering::Relaxed) {
                return Err(Error::Cancelled);
            }
            if findings.stop_merge() {
                // The first is enough; the rest of the file may be arbitrary.
                break;
            }
            // A partition ends where the next one begins.
            if let Some(previous) = index.previous()
                && (has_entry || index.is_complete())
            {
                let end = index.entry().map_or(data_len, |entry| entry.position);
                let len = end.saturating_sub(previous.position);
                if let Some(blocks) = &mut blocks {
                    blocks.entry(previous, len);
                }
                if let Some(sizes) = &mut sizes {
                    sizes.add(i64::try_from(len).unwrap_or(i64::MAX));
                }
            }
            let Some(entry) = index.entry() else { break };
            places.add(entry.hash, entry.position);
            if let Some(filter) = &mut filter {
                filter.key_unnamed(&entry.hash);
            }
        }
        index.finish();
        if let Some(filter) = &mut filter {
            filter.finish(&findings, index.is_complete(), fp_chance);
        }
        if let Some(statistics) = &statistics {
            if let Some(layout) = &layout {
                statistics_consistency::consistent(
                    &findings,
                    &statistics.stats,
                    &layout.clustering,
                );
            }
            if let Some(ends) = index.ends() {
                same_ends(&findings, statistics, Component::Index, ends);
            }
            if let (true, Some(sizes)) = (index.is_complete(), &sizes) {
                same_sizes(&findings, statistics, sizes);
            }
        }
        file.evict();
        files.digest()?
    };
    let ignored = first_damage(findings)?;
    let facts = SidecarFacts {
        places: Some(places),
        digest,
    };
    Ok((facts, ignored))
}

/// The first damage found that stops a merge, as an error; else the damage that does not stop it.
pub(super) fn first_damage(findings: Findings) -> Result<Vec<Finding>> {
    stop_at_damage(&findings)?;
    let (mut listed, ..) = findings.finish();
    listed.retain(|f| f.severity == Severity::Damage);
    Ok(listed)
}

/// Returns the first damage found that stops a merge as an error.
pub(super) fn stop_at_damage(findings: &Findings) -> Result<()> {
    match findings.first_to_stop() {
        Some(finding) => Err(finding.to_error().into()),
        None => Ok(()),
    }
}

/// Refuses any damage in these files, even if it does not stop a merge: an SSTable that is not merged is queried
/// through them.
///
/// # Errors
/// The first damage.
pub(crate) fn refuse_any(ignored: Vec<Finding>) -> Result<()> {
    match ignored.into_iter().next() {
        Some(finding) => Err(finding.to_error().into()),
        None => Ok(()),
    }
}

/// Detects a `Statistics.db` of another SSTable: compares its partition sizes with the distances between index
/// entries.
pub(super) fn same_sizes(findings: &Findings, statistics: &Statistics, sizes: &EstimatedHistogram) {
    if let Some(m) = statistics_consistency::partition_sizes(&statistics.stats, sizes) {
        findings.statistics(m.severity, m.field, m.expected, m.found);
    }
}

/// Detects a `Statistics.db` of another SSTable: compares its first and last key with those of the index.
pub(super) fn same_ends(
    findings: &Findings,
    statistics: &Statistics,
    index: Component,
    (first, last): (&[u8], &[u8]),
) {
    let stats = &statistics.stats;
    for (which, expected, found) in [
        ("first", first, &stats.first_key),
        ("last", last, &stats.last_key),
    ] {
        if let Some(found) = found
            && found != expected
        {
            let expected = format!("{which} key {}, as in {index}", short_hex(expected));
            findings.statistics(Severity::Damage, "key_range", expected, short_hex(found));
        }
    }
}
