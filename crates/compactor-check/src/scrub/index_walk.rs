//! `Index.db` as a guide to positions after damage.
//!
//! It is not trusted where the data is readable: it has no checksum of its own.

use std::ops::Range;

use compactor_io::IoError;
use compactor_sstable::big::index_info::PromotedIndex;
use compactor_sstable::data::clustering::Kind;
use compactor_sstable::data::deletion_time::DeletionTime;
use compactor_sstable::data::layout::Layout;

use super::synthesis::{Name, is_before, marker};
use crate::verify::index::{Entry, IndexScan};

/// Position in the index that follows the position in the data.
#[derive(Debug)]
pub(super) struct IndexWalk<'a> {
    scan: IndexScan<'a>,
    data_len: u64,
    here: Option<Entry>,
    /// Entries of partitions beyond the end of the data.
    pub(super) beyond: Beyond,
}

/// Entries of partitions beyond the end of the data.
#[derive(Debug, Default)]
pub(super) struct Beyond {
    /// Key, token and position of the first of them.
    pub(super) listed: Vec<(Vec<u8>, i64, u64)>,
    /// Number of the entries after these.
    pub(super) unlisted: u64,
}

/// A block of a partition at which reading can continue.
#[derive(Debug)]
pub(super) struct BlockStart {
    /// Its start in the data.
    pub(super) position: u64,
    /// Deletion of its partition.
    pub(super) partition_deletion: DeletionTime,
    /// The range tombstone that is open there, and the start of the part that it is known to cover.
    pub(super) open: Option<(DeletionTime, Name)>,
}

/// Maximum number of entries beyond the end of the data that are listed.
const BEYOND_LISTED: usize = 1000;

impl<'a> IndexWalk<'a> {
    pub(super) fn start(mut scan: IndexScan<'a>, data_len: u64) -> Result<Self, IoError> {
        scan.advance()?;
        let mut walk = IndexWalk {
            scan,
            data_len,
            here: None,
            beyond: Beyond::default(),
        };
        walk.set_beyond_apart()?;
        Ok(walk)
    }

    /// Moves to the last entry of a partition at or before `position`.
    pub(super) fn seek(&mut self, position: u64) -> Result<(), IoError> {
        while self.next().is_some_and(|entry| entry.position <= position) {
            self.advance()?;
        }
        Ok(())
    }

    /// Current entry.
    pub(super) fn here(&self) -> Option<&Entry> {
        self.here.as_ref()
    }

    /// Next entry.
    pub(super) fn next(&self) -> Option<&Entry> {
        self.scan.entry()
    }

    /// Moves to the next entry.
    pub(super) fn advance(&mut self) -> Result<(), IoError> {
        if self.scan.entry().is_some() {
            self.here = Some(self.scan.take_entry());
            self.scan.advance()?;
        }
        self.set_beyond_apart()
    }

    /// Entries that point beyond the data are useless.
    fn set_beyond_apart(&mut self) -> Result<(), IoError> {
        while let Some(entry) = self.scan.entry()
            && entry.position >= self.data_len
        {
            if self.beyond.listed.len() < BEYOND_LISTED {
                let of_entry = (entry.key.clone(), entry.hash.token, entry.position);
                self.beyond.listed.push(of_entry);
            } else {
                self.beyond.unlisted += 1;
            }
            self.scan.advance()?;
        }
        Ok(())
    }
}

/// The first block of the partition that begins inside `range` and has a valid index entry. The partition's rows
/// before it end with `last`, if any were kept.
pub(super) fn block_in(
    entry: &Entry,
    range: Range<u64>,
    layout: &Layout,
    last: Option<&Name>,
) -> Option<BlockStart> {
    if entry.promoted.is_empty() {
        return None;
    }
    let promoted =
        PromotedIndex::parse(&entry.promoted, layout.version, entry.promoted_offset).ok()?;
    let mut spans = Vec::new();
    for index in 1..promoted.block_count() {
        let Ok(block) = promoted.block(index, &layout.clustering, &mut spans) else {
            continue;
        };
        let Some(position) = entry.position.checked_add(block.offset) else {
            continue;
        };
        if !range.contains(&position) {
            continue;
        }
        let Ok(before) = promoted.block(index - 1, &layout.clustering, &mut spans) else {
            continue;
        };
        let open = match before.open_marker {
            None => None,
            Some(deletion) => {
                let place = Name(before.last.to_vec());
                match covered_from(&place, layout, last) {
                    Some(bound) => Some((deletion, bound)),
                    None => continue,
                }
            }
        };
        return Some(BlockStart {
            position,
            partition_deletion: promoted.deletion,
            open,
        });
    }
    None
}

/// Start of the part that is certainly covered by the range tombstone that is open after `place`, the end of a block:
/// a row there, which follows the marker that opened it, or that marker. `None` if it is no opening marker, or does
/// not sort after `last`.
fn covered_from(place: &Name, layout: &Layout, last: Option<&Name>) -> Option<Name> {
    let bound = place.with(layout, |prefix| {
        let kind = match prefix.kind {
            Kind::Clustering => Kind::InclStartBound,
            kind if !kind.is_open() => return None,
            kind if is_before(kind) => Kind::InclStartBound,
            _ => Kind::ExclStartBound,
        };
        let mut bound = Name::default();
        let clustering = &layout.clustering;
        clustering.write_prefix(&mut bound.0, kind, prefix.values());
        Some(bound)
    })??;
    match last {
        Some(last) if !sorts_after(&bound, last, layout) => None,
        _ => Some(bound),
    }
}

/// Returns true if `name` sorts after `last`.
pub(super) fn sorts_after(name: &Name, last: &Name, layout: &Layout) -> bool {
    let compared = last.with(layout, |a| {
        name.with(layout, |b| layout.clustering.compare(a, b).is_lt())
    });
    compared.flatten().unwrap_or(false)
}

impl BlockStart {
    /// Marker that opens the deletion that is open there; empty if there is none.
    pub(super) fn marker(&self, layout: &Layout) -> Vec<u8> {
        let Some((deletion, bound)) = &self.open else {
            return Vec::new();
        };
        marker(
            layout,
            bound,
            bound.is_before(),
            &DeletionTime::LIVE,
            deletion,
        )
    }
}
