//! Keeping and losing the rows of the current partition.

use std::ops::Range;

use compactor_sstable::data::deletion_time::DeletionTime;
use compactor_sstable::data::flags;
use compactor_sstable::partitioner::KeyHash;

use super::current::Current;
use super::index_walk::sorts_after;
use super::loss::LossKind;
use super::runs::MAX_RUNS;
use super::scan::Scan;
use super::synthesis::{self, Name};

impl Scan<'_> {
    /// Starts to keep a partition. Its head comes next.
    pub(super) fn begin_partition(&mut self, key: &[u8], hash: KeyHash, is_cut: bool) {
        let run = self.runs.assign(key, hash);
        self.current = Some(Current {
            key: key.to_vec(),
            hash,
            run,
            last: None,
            open: DeletionTime::LIVE,
            is_cut,
            is_out_of_order: run != Some(0),
            has_rows_out_of_order: false,
        });
    }

    /// Keeps bytes of the original.
    pub(super) fn keep(&mut self, range: Range<u64>) {
        match self.current.as_ref().and_then(|c| c.run) {
            Some(run) => self.runs.get_mut(run).keep(range),
            None => {
                let reason = format!("out of order in more ways than {MAX_RUNS}");
                self.lose(LossKind::Rows, range, &reason);
            }
        }
    }

    /// Adds synthesized bytes.
    pub(super) fn insert(&mut self, bytes: Vec<u8>) {
        if let Some(run) = self.current.as_ref().and_then(|c| c.run) {
            self.runs.get_mut(run).insert(bytes);
        }
    }

    /// Adds an empty static row in place of a lost one.
    pub(super) fn insert_empty_static_row(&mut self) {
        let mut bytes = Vec::new();
        self.layout.put_empty_static_row(&mut bytes);
        self.insert(bytes);
    }

    /// Records a loss in the current partition.
    pub(super) fn lose(&mut self, kind: LossKind, range: Range<u64>, reason: &str) {
        if let Some(current) = &mut self.current {
            current.is_cut = true;
        }
        let owner = self.current.as_ref().map(Current::owner);
        self.losses.add(kind, range, owner, reason);
    }

    /// Keeps a row.
    pub(super) fn keep_row(&mut self, range: Range<u64>, name: &Name) {
        self.keep(range);
        self.counts.rows += 1;
        if let Some(current) = &mut self.current {
            current.set_last(name, None);
        }
    }

    /// Keeps the part of a marker that matches the open deletion. `checked` is the reason why its deletions are
    /// invalid: they cannot be written.
    pub(super) fn keep_marker(
        &mut self,
        range: Range<u64>,
        name: &Name,
        closes: &DeletionTime,
        opens: &DeletionTime,
        checked: Result<(), String>,
    ) {
        let Some(current) = &mut self.current else {
            return;
        };
        let is_kept = checked.is_ok() || opens.is_valid();
        let opens = if is_kept { *opens } else { DeletionTime::LIVE };
        // The open deletion ends here, even if the marker closes another one.
        let close = current.open;
        current.open = opens;
        if close == *closes && checked.is_ok() {
            current.set_last(name, Some((Some(range.start), close)));
            return self.keep(range);
        }
        let made = synthesis::marker(self.layout, name, name.is_before(), &close, &opens);
        if !made.is_empty() {
            current.set_last(name, Some((None, close)));
        }
        self.insert(made);
        let reason = checked.err().map_or_else(
            || "a bound that does not fit the one before it; what was open ends here".to_owned(),
            |reason| format!("{reason}; what it deleted may come back"),
        );
        self.lose(LossKind::RangeTombstone, range, &reason);
    }

    /// Ends the salvaged part of the partition after the last row kept, and closes the open deletion there. Returns
    /// that deletion, and the position at which the loss begins.
    pub(super) fn close(&mut self, position: u64) -> (DeletionTime, u64) {
        let Some(current) = &mut self.current else {
            return (DeletionTime::LIVE, position);
        };
        let open = std::mem::replace(&mut current.open, DeletionTime::LIVE);
        let (false, Some(last), Some(run)) = (open.is_live(), &mut current.last, current.run)
        else {
            return (open, position);
        };
        let run = self.runs.get_mut(run);
        let mut lost_from = position;
        let (close, before) = match last.marker.take() {
            // It covers the row, which follows the marker that opened it.
            None => (open, false),
            // It covers nothing yet.
            Some((at, closed)) => {
                match at {
                    Some(at) => {
                        run.unkeep_from(at);
                        lost_from = at;
                    }
                    None => run.uninsert(),
                }
                (closed, last.name.is_before())
            }
        };
        let live = DeletionTime::LIVE;
        let made = synthesis::marker(self.layout, &last.name, before, &close, &live);
        run.insert(made);
        (open, lost_from)
    }

    /// Continues the partition in another run, at a row or marker that does not sort after the last one. An open range
    /// tombstone continues there with the row `name`.
    pub(super) fn break_order(&mut self, name: Option<&Name>) {
        let (open, _) = self.close(0);
        self.insert(vec![flags::END_OF_PARTITION]);
        let Some(current) = &mut self.current else {
            return;
        };
        current.has_rows_out_of_order = true;
        current.run = self.runs.assign(&current.key, current.hash);
        current.last = None;
        let (layout, live) = (self.layout, DeletionTime::LIVE);
        let mut bytes = synthesis::head(layout, &current.key, &live);
        if let Some(name) = name.filter(|_| !open.is_live()) {
            bytes.extend_from_slice(&synthesis::marker(layout, name, true, &live, &open));
            current.open = open;
        }
        self.insert(bytes);
    }

    /// The partition ends with the byte at `position`.
    pub(super) fn end_partition(&mut self, position: u64) {
        let (open, _) = self.close(position);
        if !open.is_live() {
            self.lose_range_tombstone(position, &open, "the partition ends before it does");
        }
        self.keep(position..position + 1);
        self.count_partition();
    }

    /// Ends a partition whose end marker was not read.
    pub(super) fn break_off(&mut self) {
        if let Some(current) = &mut self.current {
            current.is_cut = true;
            self.insert(vec![flags::END_OF_PARTITION]);
            self.count_partition();
        }
    }

    /// Records that a range tombstone with an unknown end was closed.
    pub(super) fn lose_range_tombstone(&mut self, at: u64, open: &DeletionTime, why: &str) {
        let reason = format!(
            "{why}: a deletion of timestamp {} ends with the last row before; what it deleted beyond \
             that row may come back",
            open.marked_for_delete_at
        );
        self.lose(LossKind::RangeTombstone, at..at, &reason);
    }

    fn count_partition(&mut self) {
        let Some(current) = self.current.take() else {
            return;
        };
        let counts = &mut self.counts;
        if current.is_cut {
            counts.cut += 1;
        } else {
            counts.whole += 1;
        }
        counts.out_of_order += u64::from(current.is_out_of_order);
        counts.with_rows_out_of_order += u64::from(current.has_rows_out_of_order);
    }

    /// True if nothing of the partition was kept in this run, or `name` sorts after it.
    pub(super) fn sorts_after_last(&self, name: &Name) -> bool {
        let last = self.current.as_ref().and_then(Current::last);
        last.is_none_or(|last| sorts_after(name, last, self.layout))
    }

    /// Continues the current partition after damage, with a marker synthesized at `name`.
    pub(super) fn reopen(&mut self, name: &Name, open: DeletionTime, marker: Vec<u8>) {
        if let Some(current) = &mut self.current {
            current.open = open;
            current.set_last(name, Some((None, DeletionTime::LIVE)));
        }
        self.insert(marker);
    }
}
