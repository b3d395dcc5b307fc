//! Foreground load: reads hot rows from the SSTables that are live, as a node does during a compaction.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use compactor::Result;
use compactor_io::lock;

use crate::draw::Draw;
use crate::hot_set::HotSet;
use crate::options::Distribution;
use crate::point_read::{PointReader, ReadState, RowFound};
use crate::random::Random;

/// Stream of random numbers of the seed.
const STREAM: u64 = 0x6279_7374;

/// Foreground load of a run: the hot rows, how often each is read, and the SSTables that reads go to: the inputs, and
/// from the moment it is published the output.
#[derive(Debug)]
pub(crate) struct Foreground {
    hot: Arc<HotSet>,
    draw: Draw,
    generation: AtomicU64,
    readers: Mutex<Arc<[PointReader]>>,
    /// Reads that found no row.
    not_found: AtomicU64,
    decompressed_bytes: AtomicU64,
}

impl Foreground {
    /// Opens SSTables for reading.
    ///
    /// # Errors
    /// Damage, or a failed read.
    pub(crate) fn open(
        data_paths: &[PathBuf],
        hot: &Arc<HotSet>,
        distribution: Distribution,
    ) -> Result<Arc<Foreground>> {
        Ok(Arc::new(Foreground {
            hot: Arc::clone(hot),
            draw: Draw::new(distribution, hot.rows.len()),
            generation: AtomicU64::new(0),
            readers: Mutex::new(PointReader::open_all(data_paths)?.into()),
            not_found: AtomicU64::new(0),
            decompressed_bytes: AtomicU64::new(0),
        }))
    }

    /// Opens others, and lets reads go to them from now on.
    ///
    /// # Errors
    /// Damage, or a failed read: reads continue from the previous SSTables.
    pub(crate) fn replace(&self, data_paths: &[PathBuf]) -> Result<()> {
        let readers = PointReader::open_all(data_paths)?;
        *lock(&self.readers) = readers.into();
        self.generation.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// Calls [`PointReader::expect_random`] of the current SSTables.
    pub(crate) fn expect_random(&self) {
        self.readers().iter().for_each(PointReader::expect_random);
    }

    /// Reads so far that found no row: of the output none that a deletion shadows.
    pub(crate) fn not_found(&self) -> u64 {
        self.not_found.load(Ordering::Relaxed)
    }

    /// Bytes that came out of decompression in all reads so far, or without it were read.
    pub(crate) fn decompressed_bytes(&self) -> u64 {
        self.decompressed_bytes.load(Ordering::Relaxed)
    }

    /// A reader thread.
    pub(crate) fn reader(self: &Arc<Self>, seed: u64, thread: u32) -> ForegroundReader {
        let generation = self.generation.load(Ordering::Acquire);
        let readers = self.readers();
        ForegroundReader {
            load: Arc::clone(self),
            random: Random::new(seed, STREAM + u64::from(thread)),
            generation,
            states: states(&readers),
            readers,
        }
    }

    fn readers(&self) -> Arc<[PointReader]> {
        Arc::clone(&lock(&self.readers))
    }
}

/// A reader thread of the foreground load.
#[derive(Debug)]
pub(crate) struct ForegroundReader {
    load: Arc<Foreground>,
    random: Random,
    generation: u64,
    readers: Arc<[PointReader]>,
    states: Vec<ReadState>,
}

impl ForegroundReader {
    /// Reads one hot row from every SSTable that may have it.
    pub(crate) fn read_row(&mut self, number: usize) -> Result<(), String> {
        let generation = self.load.generation.load(Ordering::Acquire);
        if generation != self.generation {
            self.generation = generation;
            self.readers = self.load.readers();
            self.states = states(&self.readers);
        }
        let row = &self.load.hot.rows[number];
        let (mut is_found, mut decompressed) = (false, 0);
        for (reader, state) in self.readers.iter().zip(&mut self.states) {
            let found = reader.find(row, state).map_err(|e| e.to_string())?;
            is_found |= matches!(found, RowFound::Row { .. });
            decompressed += std::mem::take(&mut state.buffer.decompressed_bytes);
        }
        let all = &self.load.decompressed_bytes;
        all.fetch_add(decompressed, Ordering::Relaxed);
        if !is_found {
            self.load.not_found.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Reads of hot rows, the popular ones more often.
    pub(crate) fn reads(mut self) -> impl FnMut() -> Result<(), String> {
        move || {
            let number = self.load.draw.next(&mut self.random);
            self.read_row(number)
        }
    }
}

fn states(readers: &[PointReader]) -> Vec<ReadState> {
    readers.iter().map(|_| ReadState::default()).collect()
}
