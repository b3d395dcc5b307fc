//! Rows that the foreground load reads: some of the table that is compacted.
//!
//! They are of partitions drawn from all over the ring, as the popular keys of an application are, not
//! of one range: so that a compaction touches them throughout, and not only once. Their number
//! is such that the parts of `Data.db` which reading them touches, in whole pages and over all SSTables that
//! have the partition, have the requested size. Pages of the index are not counted; they are few.

use std::collections::{BTreeSet, HashSet};
use std::ops::Range;
use std::path::PathBuf;

use compactor::Result;
use compactor_io::resident_pages;
use compactor_sstable::Component;

use crate::lookup::Found;
use crate::outcome::Pages;
use crate::point_read::{HotRow, PointReader, ReadState, RowFound};
use crate::random::Random;
use crate::table::Table;
use crate::watcher::{Watcher, check_cancelled};

/// Most partitions to draw from, per SSTable; if there are more, every n-th.
const MOST_CANDIDATES: u64 = 1 << 20;
/// Stream of random numbers of the seed.
const STREAM: u64 = 0x686f_7420;

/// The hot rows of a table, the most popular first.
#[derive(Debug)]
pub(crate) struct HotSet {
    pub(crate) rows: Vec<HotRow>,
    /// Numbers of the pages of each `Data.db` that reads of these rows touch, ascending.
    pages: Vec<(PathBuf, Vec<u64>)>,
    /// Ranges of each SSTable's uncompressed `Data.db` that reads of these rows need.
    pub(crate) spans: Vec<Vec<Range<u64>>>,
    /// Partitions of all SSTables.
    pub(crate) partitions: u64,
}

/// Pages of the inputs' `Data.db`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HotAndCold {
    /// Pages that reads of hot rows touch.
    pub(crate) hot: Pages,
    /// The others.
    pub(crate) cold: Pages,
}

impl HotSet {
    /// Opens a table and draws its hot rows.
    ///
    /// # Errors
    /// Damage, a failed read, or cancellation.
    pub(crate) fn of_table(
        table: &Table,
        bytes: u64,
        seed: u64,
        watcher: &dyn Watcher,
    ) -> Result<HotSet> {
        let readers = PointReader::open_all(&table.data_paths)?;
        HotSet::choose(&readers, bytes, seed, watcher)
    }

    /// Draws rows until their pages have `bytes`, or until the table has no more.
    ///
    /// # Errors
    /// Damage, a failed read, or cancellation.
    pub(crate) fn choose(
        readers: &[PointReader],
        bytes: u64,
        seed: u64,
        watcher: &dyn Watcher,
    ) -> Result<HotSet> {
        let page_bytes = rustix::param::page_size() as u64;
        let mut random = Random::new(seed, STREAM);
        let (mut candidates, partitions) = candidates(readers, watcher)?;
        random.shuffle(&mut candidates);
        let mut states: Vec<ReadState> = readers.iter().map(|_| ReadState::default()).collect();
        let mut pages = vec![BTreeSet::new(); readers.len()];
        let mut spans = vec![Vec::new(); readers.len()];
        let mut page_count = 0;
        let mut seen = HashSet::new();
        let mut rows = Vec::new();
        for (index, found) in candidates {
            if page_count * page_bytes >= bytes {
                break;
            }
            check_cancelled(watcher.is_cancelled())?;
            let state = &mut states[index];
            state.buffer.touched = None;
            let choose = |count| random.below(count);
            let Some(row) = readers[index].row_of_partition(&found, choose, state)? else {
                continue;
            };
            // Other SSTables have the same partition.
            if !seen.insert((row.hash.h1, row.hash.h2)) {
                continue;
            }
            for (index, reader) in readers.iter().enumerate() {
                let (state, pages) = (&mut states[index], &mut pages[index]);
                state.buffer.touched = Some(Vec::new());
                if let RowFound::Row { from, end, .. } = reader.find(&row, state)? {
                    spans[index].push(from..end);
                }
                for range in state.buffer.touched.take().unwrap_or_default() {
                    for page in range.start / page_bytes..range.end.div_ceil(page_bytes) {
                        page_count += u64::from(pages.insert(page));
                    }
                }
            }
            rows.push(row);
        }
        if rows.is_empty() {
            return Err(compactor::Error::invalid("the table has no rows to read"));
        }
        let paths = readers.iter().map(|r| r.descriptor.path(Component::Data));
        Ok(HotSet {
            rows,
            spans,
            pages: paths
                .zip(pages)
                .map(|(path, pages)| (path, pages.into_iter().collect()))
                .collect(),
            partitions,
        })
    }

    /// Number of pages.
    pub(crate) fn page_count(&self) -> u64 {
        self.pages.iter().map(|(_, pages)| pages.len() as u64).sum()
    }

    /// Number of them, and of the others of the same files, in the page cache; `None` where the kernel does
    /// not report it.
    pub(crate) fn resident(&self) -> Option<HotAndCold> {
        let (mut hot, mut cold) = (Pages::default(), Pages::default());
        for (path, pages) in &self.pages {
            let map = resident_pages(path).ok()??;
            // A file may be shorter than it was when the set was chosen: pages after its end do not count.
            let mut next_hot = pages.iter().peekable();
            for (number, is_resident) in (0..).zip(map) {
                let counted = match next_hot.next_if_eq(&&number) {
                    Some(_) => &mut hot,
                    None => &mut cold,
                };
                counted.total += 1;
                counted.resident += u64::from(is_resident);
            }
        }
        Some(HotAndCold { hot, cold })
    }
}

/// Partitions to draw from, with the SSTable that each is in, and how many there are altogether.
fn candidates(
    readers: &[PointReader],
    watcher: &dyn Watcher,
) -> Result<(Vec<(usize, Found)>, u64)> {
    let mut all = Vec::new();
    let mut partitions = 0;
    for (index, reader) in readers.iter().enumerate() {
        let mut found: Vec<Found> = Vec::new();
        let (mut step, mut count) = (1u64, 0u64);
        reader.lookup.for_each(|place| {
            if count.is_multiple_of(step) {
                found.push(place);
            }
            count += 1;
            // Keep every second one, and take half of them from here on.
            if found.len() as u64 > MOST_CANDIDATES {
                found = std::mem::take(&mut found).into_iter().step_by(2).collect();
                step *= 2;
            }
            check_cancelled(count.is_multiple_of(1 << 16) && watcher.is_cancelled())
        })?;
        partitions += count;
        all.extend(found.into_iter().map(|place| (index, place)));
    }
    Ok((all, partitions))
}
