//! Memory and descriptors are a budget: what inputs and output may hold at a time, and how many inputs may be
//! read at a time.
//!
//! What grows with what is merged is taken first ([`Taken`]), and buffers have what it leaves.

use compactor_io::open_files_limit;
use compactor_sstable::Format;
use compactor_sstable::bloom_filter::BloomFilter;

use crate::error::{Error, Result};
use crate::input::sample::Sample;
use crate::input::sstable::InputSstable;
use crate::read::decode::{BLOCKS_PER_REQUEST, DecodeOptions};
use crate::read::window::HEADROOM;
use crate::write::sstable_writer::SstableSettings;

/// Uncompressed bytes per chunk of an intermediate SSTable.
pub(crate) const INTERMEDIATE_CHUNK_LEN: u32 = 16 << 10;
/// Blocks that a readahead is cut into, at least.
const READAHEAD_BLOCKS: usize = 4;
/// Blocks that are decoded ahead where memory allows.
const DECODED_AHEAD: usize = 2;
/// Longest block that is decoded as one task, uncompressed bytes: what is merged at a time stays in the near
/// cache.
const MAX_BLOCK_LEN: usize = 128 << 10;
/// What is read ahead per input where memory allows and nothing is asked for.
const DEFAULT_READAHEAD: usize = 4 << 20;
/// Least bytes in front of a block's data: longer rows that straddle two blocks are copied more often.
const MIN_HEADROOM: usize = 4 << 10;
/// What an input takes beside its buffers while it is read: cursor, channel, open files. Estimated.
const READER_BYTES: usize = 16 << 10;
/// Buffers that a pass has at least, however little memory is asked for.
const LEAST_PASS_BYTES: usize = 1 << 20;

/// Memory of what the ranges behind the one whose turn it is come to, of eight parts of the whole.
const WAITING_EIGHTHS: usize = 3;
/// Samples of the inputs for each range, where memory allows: a border is looked for in the index from the
/// sample before it on.
const SAMPLES_PER_RANGE: u64 = 32;
/// And at least: ranges are as long as the samples let them be.
const LEAST_SAMPLES_PER_RANGE: u64 = 4;
/// What a sample takes while the plan is made: itself and its step, in vectors that grow.
const BYTES_PER_SAMPLE: u64 = 2 * (size_of::<Sample>() + 24) as u64;
/// Memory for samples, and for promoted indexes that are read ahead: of sixteen parts of the whole.
const LEAST_SHARE: usize = 16;
/// Promoted indexes of an input that are read ahead of the merge, at most and at least.
const INDEX_AHEAD: usize = 384 << 10;
const LEAST_INDEX_AHEAD: usize = 24 << 10;
/// An entry of the output's summary: a key of some length, its place and the offset of both.
const BYTES_PER_SUMMARY_ENTRY: u64 = 48;

/// Descriptors that are left for everything but inputs: the output, components being checked, a ring
/// for each I/O thread.
const RESERVED_FILES: u64 = 96;
/// Descriptors that an input being read takes, at most: `Data.db`, and `Index.db` where it is held
/// against the rows; the uring backend has two of each.
const FILES_PER_INPUT: u64 = 4;
/// And one that is cut into ranges, if `Index.db` stays open for its places.
const FILES_PER_CUT_INPUT: u64 = 6;
/// Inputs that are read at a time however little there is.
const LEAST_AT_ONCE: usize = 2;

/// Bytes that a range may have waiting, at least.
const LEAST_WAITING: usize = 32 << 10;
/// With more than two ranges at a time each has so much waiting, and reads so far ahead in each input: where
/// memory does not allow that, more ranges cost more than they bring.
const FAIR_WAITING: usize = 1 << 20;
const FAIR_READAHEAD: usize = 768 << 10;
/// Both ranges at a border decode the chunk that it lies in: so many chunks make that cost little.
const CHUNKS_PER_RANGE: u64 = 32;
/// A range costs some requests and allocations whatever is in it.
const LEAST_RANGE_LEN: u64 = 512 << 10;
/// Longest block of a range's output.
const MAX_RANGE_BLOCK_LEN: usize = 128 << 10;
/// Shortest block of a range's output.
const MIN_RANGE_BLOCK_LEN: usize = 8 << 10;
/// Blocks that what a range may have waiting is enough for, at least.
const BLOCKS_WAITING: usize = 8;

/// What a merge asks for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Demands {
    /// Bytes to be divided.
    pub memory_bytes: usize,
    /// Bytes of them that are not for buffers.
    pub taken: Taken,
    /// Descriptors that inputs may take.
    pub files: u64,
    /// Uncompressed bytes of all inputs.
    pub data_len: u64,
    /// Inputs whose promoted indexes are held against their rows.
    pub indexed: usize,
    /// Inputs that are read at a time.
    pub inputs: usize,
    /// SSTables that are read beside them at a time.
    pub sources: usize,
    /// Threads.
    pub threads: usize,
    /// Processors that they run on.
    pub processors: usize,
    /// Bytes read ahead per input, if somebody wants to know better.
    pub readahead_bytes: Option<usize>,
    /// Uncompressed bytes in a range, likewise.
    pub range_bytes: Option<u64>,
    /// Chunk lengths: no block is shorter. Of inputs the longest.
    pub input_unit: usize,
    /// Of the output.
    pub output_unit: usize,
    /// Chunk lengths of all inputs.
    pub all_units: u64,
    /// Bytes on disk after which an output ends.
    pub max_output_len: Option<u64>,
}

/// Bytes that a merge takes beside its buffers. They grow with what is merged, and there is no merge without
/// them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Taken {
    /// What is known of the opened inputs: a few KiB of each, and offsets of its chunks.
    pub known: usize,
    /// Components that are in memory whole while they are held against the data.
    pub checked: usize,
    /// What stays of the output until it is complete: its filter, offsets of its chunks, its summary.
    pub output: usize,
}

impl Taken {
    /// By these inputs, once they are open.
    pub(crate) fn by_inputs(inputs: &[InputSstable]) -> Taken {
        // Those of the BTI format are checked all at once, as the merge goes on; of others one at a time.
        let (bti, big): (Vec<_>, Vec<_>) = (inputs.iter()).partition(|input| input.is_bti());
        let of_bti = bti.into_iter().map(InputSstable::checked_bytes);
        let of_big = big.into_iter().map(InputSstable::checked_bytes);
        Taken {
            known: inputs.iter().map(InputSstable::held_bytes).sum(),
            checked: of_bti.sum::<usize>() + of_big.max().unwrap_or(0),
            output: 0,
        }
    }

    /// By an output of so many uncompressed bytes, too.
    pub(crate) fn with_output(self, settings: &SstableSettings, data_len: u64) -> Taken {
        let (keys, chance) = (settings.expected_keys, settings.bloom_filter_fp_chance);
        let filter = BloomFilter::bytes_for_keys(keys, chance);
        let compression = settings.compression.as_ref();
        let chunk_len = compression.map_or(64 << 10, |c| c.chunk_len);
        let offsets = data_len / u64::from(chunk_len.max(1)) * 8;
        let entries = match settings.descriptor.version.format() {
            Format::Big => keys / u64::from(settings.min_index_interval.max(1)),
            Format::Bti => 0,
        };
        // While it is filled a filter takes an eighth more.
        let output = (filter / 8 * 9)
            .saturating_add(offsets)
            .saturating_add(entries.saturating_mul(BYTES_PER_SUMMARY_ENTRY));
        Taken {
            output: usize::try_from(output).unwrap_or(usize::MAX),
            ..self
        }
    }

    /// What it leaves for buffers: a quarter of the memory at least.
    fn leaves(&self, memory_bytes: usize) -> usize {
        let taken = self.known.saturating_add(self.checked);
        let taken = taken.saturating_add(self.output);
        memory_bytes - taken.min(memory_bytes / 4 * 3)
    }
}

/// How memory and descriptors are divided.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Readahead of each input in each range.
    pub decode: DecodeOptions,
    /// Blocks of the output being compressed or waiting to be written.
    pub output_blocks: usize,
    /// Uncompressed bytes of such a block.
    pub block_len: usize,
    /// Buffer of the output's writer, bytes.
    pub write_buffer_bytes: usize,
    /// Buffers of the output's writer.
    pub write_buffers: usize,
    /// Ranges that are merged at a time.
    pub ranges_at_once: usize,
    /// Ranges that are merged, or wait for their turn.
    pub ranges_under_way: usize,
    /// Bytes that each of them may have waiting.
    pub waiting_bytes: usize,
    /// Uncompressed bytes of all inputs in a range, about.
    pub range_len: u64,
    /// Uncompressed bytes of an input between places of it that are known.
    pub sample_len: u64,
    /// Whether each input's index may stay open, for places in it that are looked for.
    pub keeps_indexes_open: bool,
    /// Bytes of each input's promoted indexes that are read ahead.
    pub index_ahead: usize,
}

impl Budget {
    /// Divides the memory. Three eighths are for ranges that wait for their turn, if several are merged at a
    /// time. Of the rest a quarter goes to the output, and three to the inputs, each of which needs room for
    /// the stored and the decoded form of what it reads ahead.
    pub fn divide(demands: &Demands) -> Budget {
        let ranges = Budget::ranges_at_once(demands);
        let memory = demands.taken.leaves(demands.memory_bytes);
        let waiting = match ranges {
            1 => 0,
            _ => memory / 8 * WAITING_EIGHTHS,
        };
        let ranges_under_way = Budget::ranges_under_way(ranges);
        let waiting_bytes = waiting / ranges_under_way;
        let least = LEAST_RANGE_LEN.max(CHUNKS_PER_RANGE * demands.all_units);
        let range_len = (waiting_bytes as u64).max(least);
        // What is merged again where an output ends is little beside the output.
        let most = demands.max_output_len.map_or(u64::MAX, |len| len / 8);
        let range_len = range_len.min(most.max(least));
        let range_len = demands.range_bytes.unwrap_or(range_len);
        let samples = (memory / LEAST_SHARE) as u64 / BYTES_PER_SAMPLE;
        let sample_len = (range_len / SAMPLES_PER_RANGE).max(demands.data_len / samples.max(1));
        let sampled = demands.data_len / sample_len.max(1) * BYTES_PER_SAMPLE;
        let range_len = range_len.max(LEAST_SAMPLES_PER_RANGE * sample_len);
        let index_ahead =
            (memory / LEAST_SHARE / demands.indexed.max(1)).clamp(LEAST_INDEX_AHEAD, INDEX_AHEAD);
        let ahead = (demands.indexed * index_ahead).min(memory / LEAST_SHARE);
        let rest = memory - waiting - ahead - (sampled as usize).min(memory / LEAST_SHARE);
        // The first range is merged again where an output ends in it.
        let again = usize::from(demands.max_output_len.is_some());
        let readers = (demands.inputs + demands.sources) * (ranges + again);
        let decode = Budget::readahead(rest, readers, ranges, demands);
        let output = rest / 4;
        let block_len = match ranges {
            1 => output / 2 / BLOCKS_WAITING,
            _ => waiting_bytes / BLOCKS_WAITING,
        };
        let block_len = block_len.clamp(MIN_RANGE_BLOCK_LEN, MAX_RANGE_BLOCK_LEN);
        let most_blocks = Budget::most_output_blocks(demands.threads);
        let output_blocks = output / 2 / (2 * block_len.max(demands.output_unit));
        // A power of two, rounded down.
        let write_buffer_bytes = 1 << (output / 2 / 4).clamp(64 << 10, 1 << 20).ilog2();
        Budget {
            decode,
            output_blocks: output_blocks.clamp(2, most_blocks),
            block_len,
            write_buffer_bytes,
            write_buffers: 4,
            ranges_at_once: ranges,
            ranges_under_way,
            waiting_bytes,
            range_len,
            sample_len,
            keeps_indexes_open: demands.inputs as u64 * FILES_PER_CUT_INPUT <= demands.files,
            index_ahead,
        }
    }

    /// Blocks of an output that keep so many threads at work.
    pub fn most_output_blocks(threads: usize) -> usize {
        2 * threads.max(1) + 4
    }

    /// What is read ahead takes memory as it is stored, for the range that is merged and, where there are
    /// several, as much for the one that is read before its turn. Little of it is decoded ahead.
    fn readahead(memory: usize, readers: usize, ranges: usize, demands: &Demands) -> DecodeOptions {
        let input_unit = demands.input_unit.max(4096);
        let per_input = memory / 4 * 3 / readers.max(1);
        let headroom = (per_input / 32).clamp(MIN_HEADROOM, HEADROOM) / MIN_HEADROOM * MIN_HEADROOM;
        let stored = match ranges {
            1 => 1,
            _ => 2,
        };
        let wanted = demands.readahead_bytes.unwrap_or(DEFAULT_READAHEAD);
        let blocks = DECODED_AHEAD + 1 + stored * READAHEAD_BLOCKS;
        let most = (per_input / blocks).min(wanted / READAHEAD_BLOCKS);
        let block_len = most
            .saturating_sub(headroom)
            .clamp(input_unit, MAX_BLOCK_LEN.max(input_unit));
        let affordable = per_input / (block_len + headroom);
        let decoded = (affordable / (1 + stored)).clamp(1, DECODED_AHEAD);
        // Of the blocks in use, the next one comes before the former goes.
        let behind = per_input.saturating_sub((decoded + 2) * (block_len + headroom));
        let depth = ((behind / stored).min(wanted) / block_len).max(1);
        // Blocks that were read together are held until the last of them is decoded: there are to be no more of
        // those than whole requests.
        let at_once = (depth / 2).clamp(1, BLOCKS_PER_REQUEST);
        DecodeOptions {
            block_len,
            depth: depth / at_once * at_once,
            decoded,
            headroom,
        }
    }

    fn ranges_under_way(at_once: usize) -> usize {
        match at_once {
            1 => 1,
            _ => at_once + at_once / 2 + 1,
        }
    }

    /// How many ranges there is memory for at a time; each reads all inputs. Half as many again as
    /// processors, since a range may wait for what it reads; more would only push one another out of the caches.
    fn ranges_at_once(demands: &Demands) -> usize {
        let memory = demands.taken.leaves(demands.memory_bytes);
        let (waiting, rest) = (
            memory / 8 * WAITING_EIGHTHS,
            memory / 8 * (8 - WAITING_EIGHTHS),
        );
        let readers = (demands.inputs + demands.sources).max(1);
        let by_readers = Budget::inputs_in(rest, demands.input_unit) / readers;
        let possible = by_readers.min(waiting / LEAST_WAITING / 2);
        let fair = (rest / 4 * 3 / readers / FAIR_READAHEAD).min(waiting / FAIR_WAITING / 3 * 2);
        let useful = demands
            .threads
            .min(demands.processors + demands.processors.div_ceil(2));
        useful.min(possible).min(fair.max(2)).max(1)
    }

    /// How many inputs a merge reads at a time, beside what shadows them: as many as memory and descriptors are
    /// enough for. Where memory is short it is as if there were [`LEAST_PASS_BYTES`]: with fewer in a pass there
    /// are more passes, whose intermediate SSTables take more memory than their buffers would.
    ///
    /// # Errors
    /// What shadows them leaves no room.
    pub(crate) fn inputs_at_once(demands: &Demands) -> Result<usize> {
        // What the output takes comes later, and a pass has less of it.
        let taken = Taken {
            output: 0,
            ..demands.taken
        };
        let memory = taken.leaves(demands.memory_bytes).max(LEAST_PASS_BYTES);
        let by_memory = Budget::inputs_in(memory, demands.input_unit);
        let by_files = usize::try_from(demands.files / FILES_PER_INPUT).unwrap_or(usize::MAX);
        let (room, sources) = (by_memory.min(by_files), demands.sources);
        if sources > LEAST_AT_ONCE && sources + LEAST_AT_ONCE > room {
            let (what, remedy) = match by_memory <= by_files {
                true => ("memory", "give it more memory"),
                false => ("the number of files that may be open", "raise that limit"),
            };
            return Err(Error::InvalidInput(format!(
                "{sources} overlapping SSTables are to be read at a time for the tombstones they provide, and \
                 {what} is enough for {} beside the inputs: {remedy}, or merge without them",
                room.saturating_sub(LEAST_AT_ONCE)
            )));
        }
        Ok(room.saturating_sub(sources).max(LEAST_AT_ONCE))
    }

    /// How many inputs there is room for: each needs a window, a block decoded ahead, and the stored form of
    /// one. `input_unit` is the longest of their chunks.
    fn inputs_in(memory_bytes: usize, input_unit: usize) -> usize {
        let unit = input_unit.max(4096);
        // What is stored is read in whole pages.
        let buffers = 2 * (unit + MIN_HEADROOM) + unit.next_multiple_of(4096) + 8192;
        memory_bytes / 4 * 3 / (buffers + READER_BYTES)
    }
}

/// Descriptors that this process may still open for inputs.
pub fn free_files() -> u64 {
    let Some(limit) = open_files_limit().soft else {
        return u64::MAX;
    };
    let taken = compactor_io::read_dir("/proc/self/fd").map_or(0, |list| list.count() as u64);
    limit.saturating_sub(taken + RESERVED_FILES)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn demands(memory_bytes: usize, inputs: usize, threads: usize, unit: usize) -> Demands {
        Demands {
            memory_bytes,
            inputs,
            threads,
            processors: threads,
            input_unit: unit,
            output_unit: unit,
            all_units: (inputs * unit) as u64,
            ..Demands::default()
        }
    }

    #[test]
    fn more_inputs_read_less_ahead_each() {
        let chunk = 16 << 10;
        let memory = 64 << 20;
        let most = Budget::inputs_in(memory, chunk);
        for threads in [1, 2, 8, 32] {
            for inputs in [1usize, 2, 16, 100, 300, most / 2, most - 1, most] {
                let budget = Budget::divide(&demands(memory, inputs, threads, chunk));
                let DecodeOptions {
                    block_len,
                    depth,
                    decoded,
                    headroom,
                } = budget.decode;
                assert!(block_len >= chunk && depth >= 1, "{inputs}: {budget:?}");
                let decoded = (decoded + 1) * (block_len + headroom);
                let ranges = budget.ranges_at_once;
                // Of as many ranges the first blocks are read before their turn.
                let stored = depth * block_len * ranges.min(2);
                let used = inputs * ranges * (decoded + stored);
                let waiting = budget.ranges_under_way * budget.waiting_bytes;
                assert!(
                    used + waiting <= memory / 8 * 7,
                    "{inputs}: {used} bytes, {budget:?}"
                );
            }
        }
    }

    #[test]
    fn there_are_no_more_ranges_than_memory() {
        let at_once = |memory, inputs, threads| {
            Budget::divide(&demands(memory, inputs, threads, 16 << 10)).ranges_at_once
        };
        assert_eq!(at_once(64 << 20, 4, 1), 1);
        assert_eq!(at_once(64 << 20, 4, 2), 2);
        assert!((3..=12).contains(&at_once(64 << 20, 4, 32)));
        assert!(at_once(1 << 30, 4, 32) == 32);
        assert_eq!(at_once(64 << 20, 10_000, 32), 1);
        assert!(at_once(1 << 20, 2, 8) < 4);
        for memory in [1usize << 20, 16 << 20, 64 << 20] {
            let budget = Budget::divide(&demands(memory, 3, 8, 16 << 10));
            let waits = budget.ranges_at_once > 1;
            assert!(
                !waits || budget.waiting_bytes >= LEAST_WAITING,
                "{budget:?}"
            );
        }
    }

    /// Passes of two inputs each take longer and hold more than passes of a few more.
    #[test]
    fn little_memory_plans_as_a_mebibyte_does() {
        let chunk = 16 << 10;
        let at_once = |memory, chunk| {
            let demands = Demands {
                files: u64::MAX,
                ..demands(memory, 10_000, 2, chunk)
            };
            Budget::inputs_at_once(&demands).unwrap()
        };
        let of_a_mebibyte = at_once(1 << 20, chunk);
        assert!(of_a_mebibyte > 4);
        for memory in [0, 64 << 10, 128 << 10] {
            assert_eq!(at_once(memory, chunk), of_a_mebibyte);
        }
        assert_eq!(at_once(64 << 20, chunk), Budget::inputs_in(64 << 20, chunk));
        // Long chunks do not fit as often, and two are merged at least.
        assert_eq!(at_once(0, 1 << 20), 2);
    }

    #[test]
    fn descriptors_are_counted_with_memory() {
        let with = |files, sources| Demands {
            files,
            sources,
            ..demands(64 << 20, 100, 2, 16 << 10)
        };
        assert_eq!(Budget::inputs_at_once(&with(40, 0)).unwrap(), 10);
        assert_eq!(Budget::inputs_at_once(&with(40, 3)).unwrap(), 7);
        assert_eq!(Budget::inputs_at_once(&with(0, 0)).unwrap(), 2);
        let error = Budget::inputs_at_once(&with(40, 9))
            .unwrap_err()
            .to_string();
        assert!(error.contains("enough for 8"), "{error}");
        assert!(Budget::divide(&with(600, 0)).keeps_indexes_open);
        assert!(!Budget::divide(&with(599, 0)).keeps_indexes_open);
    }

    #[test]
    fn what_is_taken_leaves_a_quarter() {
        let leaves = |known, checked, output, memory| {
            let taken = Taken {
                known,
                checked,
                output,
            };
            taken.leaves(memory)
        };
        assert_eq!(leaves(4 << 20, 5 << 20, 1 << 20, 64 << 20), 54 << 20);
        assert_eq!(leaves(usize::MAX, 1, 1, 64 << 20), 16 << 20);
        assert_eq!(leaves(1, 1, usize::MAX, 0), 0);
    }

    /// Samples of an input of any length, and indexes that are read ahead of any number, have a share.
    #[test]
    fn what_a_plan_takes_does_not_grow() {
        let of = |data_len, indexed| {
            let demands = Demands {
                data_len,
                indexed,
                ..demands(16 << 20, 4, 2, 16 << 10)
            };
            Budget::divide(&demands)
        };
        let short = of(1 << 28, 0);
        assert_eq!(short.sample_len, short.range_len / SAMPLES_PER_RANGE);
        for data_len in [1u64 << 30, 1 << 33, 1 << 36, 1 << 40] {
            let budget = of(data_len, 4);
            let samples = data_len / budget.sample_len * BYTES_PER_SAMPLE;
            assert!(samples <= 1 << 20, "{data_len}: {budget:?}");
            assert!(budget.range_len >= 4 * budget.sample_len, "{budget:?}");
        }
        assert_eq!(of(1 << 30, 2).index_ahead, INDEX_AHEAD);
        assert_eq!(of(1 << 30, 16).index_ahead, 64 << 10);
        assert_eq!(of(1 << 30, 1000).index_ahead, LEAST_INDEX_AHEAD);
    }

    #[test]
    fn a_block_holds_a_chunk_at_least() {
        let budget = Budget::divide(&demands(1 << 20, 1000, 2, 1 << 20));
        assert_eq!(budget.decode.block_len, 1 << 20);
        assert_eq!(budget.decode.depth, 1);
        assert!(budget.output_blocks >= 2);
    }
}
