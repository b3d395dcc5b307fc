//! Memory is a budget: what inputs and output may hold at a time.

use crate::read::decode::DecodeOptions;
use compactor_sstable::bloom_filter::BloomFilter;

use crate::read::window::HEADROOM;
use crate::write::sstable_writer::SstableSettings;

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

/// How the memory is divided.
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
}

impl Budget {
    /// Divides the memory. Three eighths are for ranges that wait for their turn, if several are merged at a
    /// time. Of the rest a quarter goes to the output, and three to the inputs, each of which needs room for
    /// the stored and the decoded form of what it reads ahead.
    pub fn divide(demands: &Demands) -> Budget {
        let ranges = Budget::ranges_at_once(demands);
        let memory = demands.memory_bytes;
        let waiting = match ranges {
            1 => 0,
            _ => memory / 8 * WAITING_EIGHTHS,
        };
        let rest = memory - waiting;
        let ranges_under_way = Budget::ranges_under_way(ranges);
        let waiting_bytes = waiting / ranges_under_way;
        let least = LEAST_RANGE_LEN.max(CHUNKS_PER_RANGE * demands.all_units);
        let range_len = (waiting_bytes as u64).max(least);
        // What is merged again where an output ends is little beside the output.
        let most = demands.max_output_len.map_or(u64::MAX, |len| len / 8);
        let range_len = range_len.min(most.max(least));
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
            range_len: demands.range_bytes.unwrap_or(range_len),
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
        // Blocks that were read together are held until the last of them is decoded.
        let behind = per_input.saturating_sub((decoded + 1) * (block_len + headroom));
        let depth = (behind / stored).min(wanted) / block_len;
        DecodeOptions {
            block_len,
            depth: depth.max(1),
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

    /// How many ranges there is memory for at a time; each reads all inputs. One more for two processors than
    /// they are, since a range may wait for what it reads; more would only push one another out of the caches.
    fn ranges_at_once(demands: &Demands) -> usize {
        let memory = demands.memory_bytes;
        let (waiting, rest) = (
            memory / 8 * WAITING_EIGHTHS,
            memory / 8 * (8 - WAITING_EIGHTHS),
        );
        let readers = (demands.inputs + demands.sources).max(1);
        let by_readers = Budget::inputs_at_once(rest, demands.input_unit) / readers;
        let possible = by_readers.min(waiting / LEAST_WAITING / 2);
        let fair = (rest / 4 * 3 / readers / FAIR_READAHEAD).min(waiting / FAIR_WAITING / 3 * 2);
        let useful = demands
            .threads
            .min(demands.processors + demands.processors.div_ceil(2));
        useful.min(possible).min(fair.max(2)).max(1)
    }

    /// What grows with an output of so many uncompressed bytes: its filter, and offsets of its chunks.
    pub(crate) fn growing(settings: &SstableSettings, data_len: u64) -> usize {
        let chance = settings.bloom_filter_fp_chance;
        let filter = BloomFilter::bytes_for_keys(settings.expected_keys, chance);
        let chunk_len = settings
            .compression
            .as_ref()
            .map_or(64 << 10, |c| c.chunk_len);
        let offsets = data_len / u64::from(chunk_len.max(1)) * 8;
        usize::try_from(filter.saturating_add(offsets)).unwrap_or(usize::MAX)
    }

    /// What is left of the memory for buffers beside what is known of opened inputs: a quarter of it at
    /// least.
    pub(crate) fn beside(memory_bytes: usize, held_bytes: usize) -> usize {
        memory_bytes - held_bytes.min(memory_bytes / 4 * 3)
    }

    /// How many inputs are read at a time where there are more than memory allows: those that fit
    /// [`LEAST_PASS_BYTES`] at least. With fewer in a pass there are more passes, whose intermediate
    /// SSTables take more memory than their buffers would.
    pub(crate) fn inputs_per_pass(memory_bytes: usize, input_unit: usize) -> usize {
        Budget::inputs_at_once(memory_bytes.max(LEAST_PASS_BYTES), input_unit)
    }

    /// How many inputs can be read at a time: each needs a window, a block decoded ahead, and the stored
    /// form of one. `input_unit` is the longest of their chunks.
    pub fn inputs_at_once(memory_bytes: usize, input_unit: usize) -> usize {
        let unit = input_unit.max(4096);
        // What is stored is read in whole pages.
        let buffers = 2 * (unit + MIN_HEADROOM) + unit.next_multiple_of(4096) + 8192;
        memory_bytes / 4 * 3 / (buffers + READER_BYTES)
    }
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
        let most = Budget::inputs_at_once(memory, chunk);
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
        let of_a_mebibyte = Budget::inputs_at_once(1 << 20, chunk);
        assert!(of_a_mebibyte > 4);
        for memory in [0, 64 << 10, 128 << 10, 1 << 20] {
            assert_eq!(Budget::inputs_per_pass(memory, chunk), of_a_mebibyte);
        }
        let memory = 64 << 20;
        let most = Budget::inputs_at_once(memory, chunk);
        assert_eq!(Budget::inputs_per_pass(memory, chunk), most);
        // Long chunks do not fit as often.
        assert_eq!(Budget::inputs_per_pass(0, 1 << 20), 0);
    }

    #[test]
    fn what_is_known_of_inputs_leaves_a_quarter() {
        assert_eq!(Budget::beside(64 << 20, 10 << 20), 54 << 20);
        assert_eq!(Budget::beside(64 << 20, usize::MAX), 16 << 20);
        assert_eq!(Budget::beside(0, 1), 0);
    }

    #[test]
    fn a_block_holds_a_chunk_at_least() {
        let budget = Budget::divide(&demands(1 << 20, 1000, 2, 1 << 20));
        assert_eq!(budget.decode.block_len, 1 << 20);
        assert_eq!(budget.decode.depth, 1);
        assert!(budget.output_blocks >= 2);
    }
}
