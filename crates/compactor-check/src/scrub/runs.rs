//! Salvaged data, as one or more runs in ascending order.
//!
//! Nearly always there is one. Partitions or rows that do not sort after those before them are added to further runs.
//! Merging the runs restores the order and reconciles duplicate rows and partitions
//! (`SortedTableScrubber.OrderCheckerIterator`, `RowMergingSSTableIterator`). A run is a list of pieces whose length
//! depends on the number of damaged places, not on the size of the data.

use std::ops::Range;

use compactor_sstable::partitioner::KeyHash;

use super::splice::Piece;

/// Maximum number of runs, each of which is an input of the merge: more out-of-order data is lost.
pub(super) const MAX_RUNS: usize = 16;

/// Partitions in ascending order.
#[derive(Debug, Default)]
pub(super) struct Run {
    pub(super) pieces: Vec<Piece>,
    last: Option<(i64, Vec<u8>)>,
}

impl Run {
    fn takes(&self, token: i64, key: &[u8]) -> bool {
        self.last
            .as_ref()
            .is_none_or(|(last_token, last)| (*last_token, &last[..]) < (token, key))
    }

    /// Appends original bytes to the run.
    pub(super) fn keep(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        match self.pieces.last_mut() {
            Some(Piece::Old(last)) if last.end == range.start => last.end = range.end,
            _ => self.pieces.push(Piece::Old(range)),
        }
    }

    /// Removes the bytes from `position` on.
    pub(super) fn unkeep_from(&mut self, position: u64) {
        if let Some(Piece::Old(last)) = self.pieces.last_mut()
            && last.contains(&position)
        {
            last.end = position;
            if last.is_empty() {
                self.pieces.pop();
            }
        }
    }

    /// Adds synthesized bytes as a separate piece.
    pub(super) fn insert(&mut self, bytes: Vec<u8>) {
        if !bytes.is_empty() {
            self.pieces.push(Piece::New(bytes));
        }
    }

    /// Removes the bytes that were inserted last.
    pub(super) fn uninsert(&mut self) {
        self.pieces.pop_if(|piece| matches!(piece, Piece::New(_)));
    }
}

/// All runs.
#[derive(Debug, Default)]
pub(super) struct Runs {
    runs: Vec<Run>,
}

impl Runs {
    /// Chooses the run of a partition: the first that it sorts after. `None` if there would be too many.
    pub(super) fn assign(&mut self, key: &[u8], hash: KeyHash) -> Option<usize> {
        let index = self
            .runs
            .iter()
            .position(|run| run.takes(hash.token, key))
            .unwrap_or(self.runs.len());
        if index == MAX_RUNS {
            return None;
        }
        if index == self.runs.len() {
            self.runs.push(Run::default());
        }
        let last = &mut self.runs[index].last;
        let (token, last_key) = last.get_or_insert_default();
        *token = hash.token;
        last_key.clear();
        last_key.extend_from_slice(key);
        Some(index)
    }

    /// Token and key of the last partition of the first run.
    pub(super) fn last(&self) -> Option<(i64, &[u8])> {
        let (token, key) = self.runs.first()?.last.as_ref()?;
        Some((*token, key))
    }

    pub(super) fn get_mut(&mut self, index: usize) -> &mut Run {
        &mut self.runs[index]
    }

    /// The runs that are not empty.
    pub(super) fn into_pieces(self) -> Vec<Vec<Piece>> {
        let runs = self.runs.into_iter().map(|run| run.pieces);
        runs.filter(|pieces| !pieces.is_empty()).collect()
    }
}
