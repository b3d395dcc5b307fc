//! Whose turn it is among the ranges of a merge.
//!
//! Ranges are taken in their order. What the one whose turn it is comes to is added to the output at once,
//! by whoever holds the order; what those behind it come to waits, up to a number of bytes each. Who has
//! too much waiting does other work. Nobody waits for the order: who finds it held leaves what he has to
//! the holder.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::Thread;

use crate::error::{Error, Result};
use crate::job::range_output::Piece;
use crate::read::workers::WorkerQueue;

/// How many ranges there are, and how many are under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SequencerLimits {
    pub(crate) ranges: usize,
    /// Being merged.
    pub(crate) concurrent: usize,
    /// Being merged, or waiting.
    pub(crate) in_flight: usize,
    /// Bytes that each may have waiting.
    pub(crate) buffered_bytes: usize,
}

/// The turns of a merge.
#[derive(Debug)]
pub(crate) struct RangeSequencer {
    limits: SequencerLimits,
    queue: WorkerQueue,
    /// Is told of the end.
    caller: Thread,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The range whose turn it is, and the next to be taken.
    current: usize,
    next: usize,
    merging: usize,
    /// Threads that wait until another range may begin.
    idle: Vec<Thread>,
    /// Somebody adds to the output.
    is_output_held: bool,
    /// Of the ranges from the one whose turn it is on.
    waiting: VecDeque<Waiting>,
    /// All have been added, or it has failed.
    result: Option<Result<()>>,
    /// Nobody works any more.
    is_over: bool,
}

#[derive(Debug, Default)]
struct Waiting {
    pieces: VecDeque<(Piece, usize)>,
    bytes: usize,
    /// The thread that waits for room, and the bytes it needs.
    waiter: Option<(Thread, usize)>,
}

/// What a thread is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Merge this range.
    Merge(usize),
    Nothing,
}

/// What became of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pushed {
    Buffered,
    /// Whoever pushed it has the order now, and adds to the output until [`RangeSequencer::pop`] gives nothing.
    OutputAcquired,
    /// Nobody wants it any more.
    Dropped,
}

impl Waiting {
    /// Whether `len` more bytes may be buffered. A piece of any length is accepted if it is the only one.
    fn has_room(&self, len: usize, limits: &SequencerLimits) -> bool {
        self.bytes == 0 || self.bytes + len <= limits.buffered_bytes
    }
}

/// Wakes a thread that waits until another range may begin: other sleeping threads wait for something else.
fn wake_idle(mut state: MutexGuard<'_, State>) {
    let idle = state.idle.pop();
    drop(state);
    if let Some(thread) = idle {
        thread.unpark();
    }
}

impl RangeSequencer {
    pub(crate) fn new(limits: SequencerLimits, queue: WorkerQueue) -> RangeSequencer {
        RangeSequencer {
            limits,
            queue,
            caller: std::thread::current(),
            state: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is to be done next; `None` while that is not known.
    pub(crate) fn next(&self) -> Option<Next> {
        let limits = &self.limits;
        let mut state = self.lock();
        if state.is_over {
            return Some(Next::Nothing);
        }
        let may_begin = state.next < limits.ranges
            && state.merging < limits.concurrent
            && state.next < state.current + limits.in_flight
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

    /// A range has been merged.
    pub(crate) fn merged(&self) {
        let mut state = self.lock();
        state.merging -= 1;
        wake_idle(state);
    }

    /// Adds a piece, once there is room.
    pub(crate) fn push(&self, range: usize, piece: Piece, len: usize) -> Pushed {
        let mut piece = Some(piece);
        self.queue.wait_for(|| {
            let mut state = self.lock();
            let state = &mut *state;
            let place = range.checked_sub(state.current);
            let waiting = place.and_then(|place| state.waiting.get_mut(place));
            let Some(waiting) = waiting.filter(|_| state.result.is_none()) else {
                return Some(Pushed::Dropped);
            };
            if !waiting.has_room(len, &self.limits) {
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
                return Some(Pushed::OutputAcquired);
            }
            Some(Pushed::Buffered)
        })
    }

    /// The next piece of the range whose turn it is, and its number. The order is given back where there is
    /// none.
    pub(crate) fn pop(&self) -> Option<(usize, Piece)> {
        let mut state = self.lock();
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
            Some((_, len)) => waiting.has_room(len, &self.limits),
            None => false,
        };
        let waiter = waiting.waiter.take_if(|_| room);
        drop(state);
        if let Some((thread, _)) = waiter {
            thread.unpark();
        }
        Some((current, piece))
    }

    /// The range whose turn it was has been added to the output.
    pub(crate) fn advance(&self) {
        let mut state = self.lock();
        state.current += 1;
        state.waiting.pop_front();
        if state.current == self.limits.ranges {
            state.result.get_or_insert(Ok(()));
            self.caller.unpark();
        }
        wake_idle(state);
    }

    /// It has failed, and nobody waits any more.
    pub(crate) fn fail(&self, error: Error) {
        let mut state = self.lock();
        match &state.result {
            Some(Err(_)) => {}
            _ => state.result = Some(Err(error)),
        }
        drop(state);
        self.close();
    }

    /// Nobody is to work any more.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.is_over = true;
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        drop(waiting);
        self.caller.unpark();
        self.queue.wake_all();
    }

    /// Whether all have been added, or what it has failed with. Once.
    pub(crate) fn take_result(&self) -> Option<Result<()>> {
        let mut state = self.lock();
        match &state.result {
            None => None,
            Some(Ok(())) => Some(Ok(())),
            Some(Err(_)) => state.result.replace(Err(Error::Cancelled)),
        }
    }
}
