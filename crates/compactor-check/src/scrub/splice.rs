//! Uncompressed `Data.db` composed of pieces of the original and synthesized bytes.
//!
//! Reading after damage and rewriting both use the cursor of merges, over this source.

use std::borrow::BorrowMut;
use std::collections::VecDeque;
use std::marker::PhantomData;
use std::ops::Range;

use compactor_engine::read::{Block, BlockSource, HEADROOM};

use crate::Result;
use crate::verify::chunks::CheckedData;

/// A piece of the new content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// Bytes at these positions of the uncompressed `Data.db`.
    Old(Range<u64>),
    /// Synthesized bytes.
    New(Vec<u8>),
}

impl Piece {
    pub(super) fn len(&self) -> u64 {
        match self {
            Piece::Old(range) => range.end - range.start,
            Piece::New(bytes) => bytes.len() as u64,
        }
    }
}

/// [`BlockSource`] over pieces, in their order.
#[derive(Debug)]
pub(super) struct Spliced<'a, D> {
    data: D,
    pieces: VecDeque<Piece>,
    total_len: u64,
    /// Bytes decoded beyond the end of a piece, and the position of the first.
    ahead: Option<(u64, Block)>,
    of: PhantomData<&'a ()>,
}

impl<'a, D: BorrowMut<CheckedData<'a>>> Spliced<'a, D> {
    pub(super) fn new(data: D, pieces: impl IntoIterator<Item = Piece>) -> Spliced<'a, D> {
        let pieces: VecDeque<Piece> = pieces.into_iter().filter(|p| p.len() > 0).collect();
        Spliced {
            data,
            total_len: pieces.iter().map(Piece::len).sum(),
            pieces,
            ahead: None,
            of: PhantomData,
        }
    }

    /// Bytes from `position` to the end of the decoded block.
    fn decode(&mut self, position: u64) -> Result<Option<Block>> {
        if let Some((start, block)) = self.ahead.take()
            && let Some(skip) = position.checked_sub(start)
            && skip < block.len() as u64
        {
            let mut block = block;
            block.skip(skip as usize);
            return Ok(Some(block));
        }
        self.data.borrow_mut().segment(position).next_block()
    }
}

impl<'a, D: BorrowMut<CheckedData<'a>>> BlockSource for Spliced<'a, D> {
    fn next_block(&mut self) -> Result<Option<Block>> {
        let range = match self.pieces.pop_front() {
            None => return Ok(None),
            Some(Piece::New(bytes)) => {
                let mut block = Block::default();
                block.clear(HEADROOM);
                block.bytes.extend_from_slice(&bytes);
                return Ok(Some(block));
            }
            Some(Piece::Old(range)) => range,
        };
        let Some(mut block) = self.decode(range.start)? else {
            return Ok(None);
        };
        let wanted = range.end - range.start;
        if block.len() as u64 > wanted {
            let wanted = wanted as usize;
            let mut rest = Block::default();
            rest.clear(HEADROOM);
            rest.bytes.extend_from_slice(&block.data()[wanted..]);
            block.truncate(wanted);
            self.ahead = Some((range.end, rest));
        }
        let next = range.start + block.len() as u64;
        if next < range.end {
            self.pieces.push_front(Piece::Old(next..range.end));
        }
        Ok(Some(block))
    }

    fn recycle(&mut self, _: Block) {}

    fn total_len(&self) -> u64 {
        self.total_len
    }
}
