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
        let page_bytes = rustix::param::page_size() as u64;
        HotSet::choose(&readers, bytes, page_bytes, seed, &|| {
            check_cancelled(watcher.is_cancelled())
        })
    }

    /// Draws rows until their pages have `bytes`, or until the table has no more. `go_on` fails when to give
    /// up.
    ///
    /// # Errors
    /// Damage, a failed read, or that of `go_on`.
    pub(crate) fn choose(
        readers: &[PointReader],
        bytes: u64,
        page_bytes: u64,
        seed: u64,
        go_on: &dyn Fn() -> Result<()>,
    ) -> Result<HotSet> {
        let mut random = Random::new(seed, STREAM);
        let (mut candidates, partitions) = candidates(readers, go_on)?;
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
            go_on()?;
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
        let (mut total, mut resident) = (0, 0);
        let (mut hot_total, mut hot) = (0, 0);
        for (path, pages) in &self.pages {
            let map = resident_pages(path).ok()??;
            let is_resident = |page: &&u64| map.get(**page as usize).is_some_and(|&page| page);
            // A file may be shorter than it was when the set was chosen.
            hot_total += pages
                .iter()
                .filter(|page| (**page as usize) < map.len())
                .count() as u64;
            hot += pages.iter().filter(is_resident).count() as u64;
            resident += map.iter().filter(|&&page| page).count() as u64;
            total += map.len() as u64;
        }
        let pages = |total, resident| Pages {
            total,
            resident,
            ..Pages::default()
        };
        Some(HotAndCold {
            hot: pages(hot_total, hot),
            cold: pages(total - hot_total, resident - hot),
        })
    }
}

/// Partitions to draw from, with the SSTable that each is in, and how many there are altogether.
fn candidates(
    readers: &[PointReader],
    go_on: &dyn Fn() -> Result<()>,
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
                let mut number = 0;
                found.retain(|_| {
                    number += 1;
                    number % 2 == 1
                });
                step *= 2;
            }
            if count.is_multiple_of(1 << 16) {
                go_on()
            } else {
                Ok(())
            }
        })?;
        partitions += count;
        all.extend(found.into_iter().map(|place| (index, place)));
    }
    Ok((all, partitions))
}
