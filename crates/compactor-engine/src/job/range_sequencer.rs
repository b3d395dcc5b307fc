//! Sequencer of the ranges of a merge.
//!
//! Ranges are begun in order. The pieces of the current range are appended to the output immediately, by the
//! thread that has acquired the output. The pieces of the following ranges are buffered, up to a number of
//! bytes each; a thread whose range exceeds its limit does other work. No thread waits for the output: one
//! that finds it acquired leaves its pieces to the thread that has it.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard};
use std::thread::Thread;

use compactor_io::lock;

use crate::error::{Error, Result};
use crate::job::budget::Budget;
use crate::job::range_output::Piece;
use crate::read::workers::WorkerQueue;

/// Sequencer of the ranges of a merge.
#[derive(Debug)]
pub(crate) struct RangeSequencer {
    /// Number of ranges.
    ranges: usize,
    /// Limits those in progress.
    budget: Budget,
    queue: WorkerQueue,
    /// Thread to be unparked at the end.
    caller: Thread,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The range being appended, and the next to be merged.
    current: usize,
    next: usize,
    merging: usize,
    /// Threads that wait until another range may begin.
    idle: Vec<Thread>,
    /// Whether a thread has acquired the output.
    is_output_held: bool,
    /// Buffered pieces of the ranges from the current one on.
    waiting: VecDeque<Waiting>,
    /// Result: all ranges have been appended, or an error.
    result: Option<Result<()>>,
    /// Whether no more work is to be begun.
    is_over: bool,
}

#[derive(Debug, Default)]
struct Waiting {
    pieces: VecDeque<(Piece, usize)>,
    bytes: usize,
    /// The thread that waits for room, and the length of its piece.
    waiter: Option<(Thread, usize)>,
}

/// Next work of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Merge this range.
    Merge(usize),
    Stop,
}

impl Waiting {
    /// Whether `len` more bytes may be buffered. A piece of any length is accepted if it is the only one.
    fn has_room(&self, len: usize, budget: &Budget) -> bool {
        let most = budget.buffered_bytes.max(budget.block_len * 2);
        self.bytes == 0 || self.bytes + len <= most
    }
}

/// Wakes a thread that waits until another range may begin. Other sleeping threads wait for something else.
fn wake_idle(mut state: MutexGuard<'_, State>) {
    let idle = state.idle.pop();
    drop(state);
    if let Some(thread) = idle {
        thread.unpark();
    }
}

impl RangeSequencer {
    pub(crate) fn new(ranges: usize, budget: Budget, queue: WorkerQueue) -> RangeSequencer {
        RangeSequencer {
            ranges,
            budget,
            queue,
            caller: std::thread::current(),
            state: Mutex::default(),
        }
    }

    /// Returns the next work; `None` if the thread must wait for it.
    pub(crate) fn next(&self) -> Option<Next> {
        let mut state = lock(&self.state);
        if state.is_over {
            return Some(Next::Stop);
        }
        let may_begin = state.next < self.ranges
            && state.merging < self.budget.concurrent_ranges
            && state.next < state.current + self.budget.ranges_in_flight
            && state.result.is_none();
        let me = std::thread::current();
        state.idle.retain(|other| other.id() != me.id());
        if !may_begin {
            state.idle.push(me);
            return None;
        }
        state.next += 1;
        state.merging += 1;
        let begun = state.next - state.current;
        state.waiting.resize_with(begun, Waiting::default);
        Some(Next::Merge(state.next - 1))
    }

    /// Records that a range has been merged.
    pub(crate) fn merged(&self) {
        let mut state = lock(&self.state);
        state.merging -= 1;
        wake_idle(state);
    }

    /// Adds a piece of a range, once there is room for it; drops it if the merge has ended. Returns whether the
    /// caller has acquired the output, and must append pieces until [`RangeSequencer::pop`] returns none.
    #[must_use]
    pub(crate) fn push(&self, range: usize, piece: Piece, len: usize) -> bool {
        let mut piece = Some(piece);
        self.queue.wait_for(|| {
            let mut state = lock(&self.state);
            let state = &mut *state;
            let place = range.checked_sub(state.current);
            let waiting = place.and_then(|place| state.waiting.get_mut(place));
            let Some(waiting) = waiting.filter(|_| state.result.is_none()) else {
                return Some(false);
            };
            if !waiting.has_room(len, &self.budget) {
                waiting.waiter = Some((std::thread::current(), len));
                return None;
            }
            waiting.waiter = None;
            waiting.bytes += len;
            waiting
                .pieces
                .extend(piece.take().map(|piece| (piece, len)));
            if place == Some(0) && !state.is_output_held {
                state.is_output_held = true;
                return Some(true);
            }
            Some(false)
        })
    }

    /// Returns the next piece of the current range and the range's number. If there is none, releases the
    /// output.
    pub(crate) fn pop(&self) -> Option<(usize, Piece)> {
        let mut state = lock(&self.state);
        let current = state.current;
        let front = state.waiting.front_mut();
        let Some((waiting, (piece, len))) =
            front.and_then(|waiting| waiting.pieces.pop_front().map(|piece| (waiting, piece)))
        else {
            state.is_output_held = false;
            return None;
        };
        waiting.bytes -= len;
        let room = match waiting.waiter {
            Some((_, len)) => waiting.has_room(len, &self.budget),
            None => false,
        };
        let waiter = waiting.waiter.take_if(|_| room);
        drop(state);
        if let Some((thread, _)) = waiter {
            thread.unpark();
        }
        Some((current, piece))
    }

    /// Advances to the next range after the current one has been appended.
    pub(crate) fn advance(&self) {
        let mut state = lock(&self.state);
        state.current += 1;
        state.waiting.pop_front();
        if state.current == self.ranges {
            state.result.get_or_insert(Ok(()));
            self.caller.unpark();
        }
        wake_idle(state);
    }

    /// Ends the merge with an error. Waiting threads return.
    pub(crate) fn fail(&self, error: Error) {
        let mut state = lock(&self.state);
        match &state.result {
            Some(Err(_)) => {}
            _ => state.result = Some(Err(error)),
        }
        drop(state);
        self.close();
    }

    /// Ends the work of all threads.
    pub(crate) fn close(&self) {
        let mut state = lock(&self.state);
        state.is_over = true;
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        drop(waiting);
        self.caller.unpark();
        self.queue.wake_all();
    }

    /// Takes the result, once the merge has ended. An error is returned once.
    pub(crate) fn take_result(&self) -> Option<Result<()>> {
        let mut state = lock(&self.state);
        match &state.result {
            None => None,
            Some(Ok(())) => Some(Ok(())),
            Some(Err(_)) => state.result.replace(Err(Error::Cancelled)),
        }
    }
}
