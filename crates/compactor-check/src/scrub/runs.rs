//! Salvaged data, in as many ascending runs as its order requires.
//!
//! Nearly always that is one. Partitions or rows that do not sort behind those before them go to
//! further runs, and merging the runs brings everything in order; rows and partitions that are there
//! twice become one on the way (`SortedTableScrubber.OrderCheckerIterator`,
//! `RowMergingSSTableIterator`). A run is a list of pieces that grows with the number of damaged
//! places, not with the data.

use std::ops::Range;

use compactor_sstable::partitioner::KeyHash;

use super::splice::Piece;

/// Runs beyond which out-of-order data is given up: each is read on its own when they are merged.
pub(super) const MAX_RUNS: usize = 16;

/// Partitions that ascend.
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

    /// Takes the bytes from `position` on back.
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

    /// Adds new bytes, as a piece of their own.
    pub(super) fn insert(&mut self, bytes: Vec<u8>) {
        if !bytes.is_empty() {
            self.pieces.push(Piece::New(bytes));
        }
    }

    /// Takes the bytes that were inserted last back.
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
    /// Chooses the run of a partition: the first that it sorts behind. `None` if there would be too
    /// many.
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

    /// The runs that hold something.
    pub(super) fn into_pieces(self) -> Vec<Vec<Piece>> {
        let runs = self.runs.into_iter().map(|run| run.pieces);
        runs.filter(|pieces| !pieces.is_empty()).collect()
    }
}
