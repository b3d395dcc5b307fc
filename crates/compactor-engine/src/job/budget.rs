//! Divides memory and file descriptors between inputs and output, and limits the number of inputs that are read
//! at a time.
//!
//! Memory that grows with the size of the inputs is subtracted first; the rest is divided into buffers.

use compactor_io::open_files_limit;
use compactor_sstable::Format;
use compactor_sstable::bloom_filter::BloomFilter;

use crate::error::{Error, Result};
use crate::input::sample::Sample;
use crate::input::sstable::InputSstable;
use crate::read::decode::BLOCKS_PER_REQUEST;
use crate::read::reading::DecodeOptions;
use crate::read::window::HEADROOM;
use crate::write::sstable_settings::SstableSettings;

/// Uncompressed bytes per chunk of an intermediate SSTable.
pub(crate) const INTERMEDIATE_CHUNK_LEN: u32 = 16 << 10;
/// Minimum number of blocks in the readahead of an input.
const READAHEAD_BLOCKS: usize = 4;
/// Maximum savings by compression that the readahead relies on. Beyond them, more blocks do not make a merge faster.
const MAX_SAVED_PERCENT: usize = 75;
/// Maximum number of blocks decoded ahead.
const DECODED_AHEAD: usize = 2;
/// Maximum uncompressed bytes of a block, which is decoded as one task: the blocks being merged fit into the L2
/// cache.
const MAX_BLOCK_LEN: usize = 128 << 10;
/// Default readahead of an input, bytes, if memory allows.
const DEFAULT_READAHEAD: usize = 4 << 20;
/// Minimum headroom before a block's data, bytes. A longer row that straddles two blocks is copied more often.
const MIN_HEADROOM: usize = 4 << 10;
/// Estimated bytes of an input being read, in addition to its buffers: cursor, channel, open files.
const READER_BYTES: usize = 16 << 10;
/// Estimated bytes of a thread: its stack, and the pools of the allocator.
const THREAD_BYTES: usize = 32 << 10;
/// Minimum bytes for the buffers of a pass.
const MIN_PASS_BYTES: usize = 1 << 20;

/// Share of the memory, in eighths, for the buffered output of ranges that wait for their turn.
const BUFFERED_EIGHTHS: usize = 3;
/// Index samples of each input per range, if memory allows. The search for a split point starts at the sample
/// before it.
const SAMPLES_PER_RANGE: u64 = 32;
/// Minimum number of them: with fewer samples ranges are longer.
const MIN_SAMPLES_PER_RANGE: u64 = 4;
/// Bytes of a sample while ranges are planned: a [`Sample`] and its step, in vectors that grow by doubling.
const BYTES_PER_SAMPLE: u64 = 2 * (size_of::<Sample>() + 24) as u64;
/// Divisor for the share of the memory that samples get, and for that of promoted indexes that are read
/// ahead.
const SIXTEENTH: usize = 16;
/// Maximum and minimum bytes of an input's promoted indexes that are read ahead of the merge.
const MAX_INDEX_AHEAD: usize = 384 << 10;
const MIN_INDEX_AHEAD: usize = 24 << 10;
/// Estimated bytes of an entry of the output's summary: key, position, and the offset of the entry.
const BYTES_PER_SUMMARY_ENTRY: u64 = 48;

/// Descriptors reserved for everything but inputs: the output, components being checked, a ring for each I/O
/// thread.
const RESERVED_FILES: u64 = 96;
/// Maximum descriptors of an input being read: `Data.db`, and `Index.db` if it is validated against the rows; the
/// uring backend opens each twice.
const FILES_PER_INPUT: u64 = 4;
/// Maximum descriptors of an input that is split into ranges while its `Index.db` stays open for lookups.
const FILES_PER_SPLIT_INPUT: u64 = 6;
/// Minimum number of inputs read at a time.
const MIN_CONCURRENT_INPUTS: usize = 2;

/// Minimum bytes of output that a range may buffer while it waits for its turn.
const MIN_BUFFERED: usize = 32 << 10;
/// Minimum buffered output of a range, and readahead of each of its inputs, bytes, for more than two ranges at a
/// time: with less, another range costs more than it gains.
const FAIR_BUFFERED: usize = 1 << 20;
const FAIR_READAHEAD: usize = 768 << 10;
/// Minimum chunks of each input per range. The chunk at a split point is decoded by both ranges, which is cheap
/// in comparison with this number.
const CHUNKS_PER_RANGE: u64 = 32;
/// Minimum uncompressed bytes of a range, since each range has a fixed cost of requests and allocations.
const MIN_RANGE_LEN: u64 = 512 << 10;
/// Maximum bytes of a block of a range's output.
const MAX_RANGE_BLOCK_LEN: usize = 128 << 10;
/// Minimum bytes of a block of a range's output.
const MIN_RANGE_BLOCK_LEN: usize = 8 << 10;
/// Minimum number of blocks that a range may buffer.
const BUFFERED_BLOCKS: usize = 8;

/// Size of a merge, and limits set by its options.
#[derive(Clone, Copy, Debug, Default)]
pub struct Demands {
    /// Memory limit, bytes.
    pub memory_bytes: usize,
    /// Part of it that the inputs take in addition to buffers, bytes.
    pub of_inputs: usize,
    /// Part of it that the output takes in addition to buffers, bytes.
    pub of_output: usize,
    /// File descriptors available for inputs.
    pub files: u64,
    /// Uncompressed bytes of all inputs.
    pub data_len: u64,
    /// Number of inputs whose promoted indexes are validated against their rows.
    pub indexed: usize,
    /// Number of inputs read at a time.
    pub inputs: usize,
    /// Number of overlapping SSTables read at the same time.
    pub sources: usize,
    /// Number of threads.
    pub threads: usize,
    /// Number of processors available to them.
    pub processors: usize,
    /// Readahead per input, bytes, if set by an option.
    pub readahead_bytes: Option<usize>,
    /// Uncompressed bytes per range, if set by an option.
    pub range_bytes: Option<u64>,
    /// Longest chunk length of the inputs, bytes: the minimum length of a block.
    pub input_unit: usize,
    /// Chunk length of the output, bytes.
    pub output_unit: usize,
    /// Sum of the chunk lengths of all inputs, bytes.
    pub all_units: u64,
    /// Percentage by which blocks of an input are shorter in their stored form, at least; mean of the inputs.
    pub saved_percent: usize,
    /// Maximum bytes of an output's `Data.db`.
    pub max_output_len: Option<u64>,
}

/// Memory of these open inputs in addition to their buffers, bytes. It grows with their size and cannot be limited:
/// metadata, a few KiB each and their chunk offsets, and components that are kept in memory while they are
/// validated against the data.
pub(crate) fn memory_of_inputs(inputs: &[InputSstable]) -> usize {
    // BTI inputs are validated all together during the merge (in passes, those of a pass: this is the most that it
    // can take), BIG inputs one after the other.
    let (bti, big): (Vec<_>, Vec<_>) = (inputs.iter()).partition(|input| input.is_bti());
    let of_bti: usize = bti.into_iter().map(InputSstable::validation_bytes).sum();
    let of_big = big.into_iter().map(InputSstable::validation_bytes).max();
    let metadata: usize = inputs.iter().map(InputSstable::metadata_bytes).sum();
    metadata.saturating_add(of_bti + of_big.unwrap_or(0))
}

/// Memory of the components of an output that are built in memory: Bloom filter, chunk offsets, summary. The output
/// has `data_len` uncompressed bytes.
pub(crate) fn memory_of_output(settings: &SstableSettings, data_len: u64) -> usize {
    let (keys, chance) = (settings.expected_keys, settings.bloom_filter_fp_chance);
    let filter = BloomFilter::bytes_for_keys(keys, chance);
    let compression = settings.compression.as_ref();
    let chunk_len = compression.map_or(64 << 10, |c| c.chunk_len);
    let offsets = data_len / u64::from(chunk_len.max(1)) * 8;
    let entries = match settings.descriptor.version.format() {
        Format::Big => keys / u64::from(settings.min_index_interval.max(1)),
        Format::Bti => 0,
    };
    // `FilterBuilder` takes an eighth more than the filter.
    let output = (filter / 8 * 9)
        .saturating_add(offsets)
        .saturating_add(entries.saturating_mul(BYTES_PER_SUMMARY_ENTRY));
    usize::try_from(output).unwrap_or(usize::MAX)
}

/// Bytes of `memory_bytes` left for buffers after these are taken: at least a quarter.
fn left_for_buffers(memory_bytes: usize, taken: usize) -> usize {
    memory_bytes - taken.min(memory_bytes / 4 * 3)
}

/// Division of memory and descriptors.
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
    /// Ranges that are merged at a time.
    pub concurrent_ranges: usize,
    /// Ranges that are being merged or wait for their turn.
    pub ranges_in_flight: usize,
    /// Bytes of output that each of them may buffer.
    pub buffered_bytes: usize,
    /// Approximate uncompressed bytes of all inputs per range.
    pub range_len: u64,
    /// Uncompressed bytes between two index samples of an input.
    pub sample_len: u64,
    /// Whether `Index.db` of each input may stay open for lookups of split points.
    pub keeps_indexes_open: bool,
    /// Bytes of each input's promoted indexes that are read ahead.
    pub index_ahead: usize,
}

impl Budget {
    /// Divides the memory. Three eighths are for ranges that wait for their turn, if several are merged at a
    /// time. Of the rest a quarter goes to the output, and three to the inputs, each of which needs room for
    /// the stored and the decoded form of what it reads ahead.
    pub fn divide(demands: &Demands) -> Budget {
        let taken = demands.of_inputs.saturating_add(demands.of_output);
        let taken = taken.saturating_add(demands.threads * THREAD_BYTES);
        let memory = left_for_buffers(demands.memory_bytes, taken);
        let ranges = Budget::concurrent_ranges(memory, demands);
        let (waiting, ranges_in_flight) = match ranges {
            1 => (0, 1),
            _ => (memory / 8 * BUFFERED_EIGHTHS, ranges + ranges / 2 + 1),
        };
        let buffered_bytes = waiting / ranges_in_flight;
        let least = MIN_RANGE_LEN.max(CHUNKS_PER_RANGE * demands.all_units);
        let range_len = (buffered_bytes as u64).max(least);
        // The range that an output ends in is merged again: it is to be short in comparison with the output.
        let most = demands.max_output_len.map_or(u64::MAX, |len| len / 8);
        let range_len = range_len.min(most.max(least));
        let range_len = demands.range_bytes.unwrap_or(range_len);
        let samples = (memory / SIXTEENTH) as u64 / BYTES_PER_SAMPLE;
        let sample_len = (range_len / SAMPLES_PER_RANGE).max(demands.data_len / samples.max(1));
        let sampled = demands.data_len / sample_len.max(1) * BYTES_PER_SAMPLE;
        let range_len = range_len.max(MIN_SAMPLES_PER_RANGE * sample_len);
        let index_ahead =
            (memory / SIXTEENTH / demands.indexed.max(1)).clamp(MIN_INDEX_AHEAD, MAX_INDEX_AHEAD);
        let ahead = (demands.indexed * index_ahead).min(memory / SIXTEENTH);
        let rest = memory - waiting - ahead - (sampled as usize).min(memory / SIXTEENTH);
        // One more range is read while the range that an output ends in is merged again.
        let again = usize::from(demands.max_output_len.is_some());
        let readers = (demands.inputs + demands.sources) * (ranges + again);
        let decode = Budget::readahead(rest, readers, ranges, demands);
        let output = rest / 4;
        let block_len = match ranges {
            1 => output / 2 / BUFFERED_BLOCKS,
            _ => buffered_bytes / BUFFERED_BLOCKS,
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
            concurrent_ranges: ranges,
            ranges_in_flight,
            buffered_bytes,
            range_len,
            sample_len,
            keeps_indexes_open: demands.inputs as u64 * FILES_PER_SPLIT_INPUT <= demands.files,
            index_ahead,
        }
    }

    /// Number of output blocks that keeps `threads` threads busy.
    pub fn most_output_blocks(threads: usize) -> usize {
        2 * threads.max(1) + 4
    }

    /// Readahead of each of `readers` readers in `memory` bytes. Blocks are read ahead in their stored form, both
    /// for the range being merged and, with several ranges, for the next one; only a few are decoded ahead.
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
        // The window takes the next block before it recycles the current one: both are in use.
        let for_stored = per_input.saturating_sub((decoded + 2) * (block_len + headroom));
        let stored_len = block_len * (100 - demands.saved_percent.min(MAX_SAVED_PERCENT)) / 100;
        let depth = ((for_stored / stored).min(wanted) / stored_len).max(1);
        // The buffer of a request is released when its last block has been decoded. With a depth of whole requests
        // no more than `depth` blocks are held.
        let per_request = (depth / 2).clamp(1, BLOCKS_PER_REQUEST);
        DecodeOptions {
            block_len,
            depth: depth / per_request * per_request,
            decoded,
            headroom,
        }
    }

    /// Number of ranges merged at a time, each of which reads all inputs: the most that memory allows, up to one and a
    /// half per processor. A range may wait for a read; more ranges would only evict one another from the CPU
    /// caches.
    fn concurrent_ranges(memory: usize, demands: &Demands) -> usize {
        let (waiting, rest) = (
            memory / 8 * BUFFERED_EIGHTHS,
            memory / 8 * (8 - BUFFERED_EIGHTHS),
        );
        let readers = (demands.inputs + demands.sources).max(1);
        let by_readers = Budget::inputs_in(rest, demands.input_unit) / readers;
        let possible = by_readers.min(waiting / MIN_BUFFERED / 2);
        let fair = (rest / 4 * 3 / readers / FAIR_READAHEAD).min(waiting / FAIR_BUFFERED / 3 * 2);
        let useful = demands
            .threads
            .min(demands.processors + demands.processors.div_ceil(2));
        useful.min(possible).min(fair.max(2)).max(1)
    }

    /// Number of inputs that memory and descriptors allow to be read at a time, in addition to the overlapping
    /// SSTables. With less than [`MIN_PASS_BYTES`] of memory it is the number for that much: fewer inputs per pass
    /// make more passes, whose intermediate SSTables take more memory than the buffers save.
    ///
    /// # Errors
    /// The overlapping SSTables leave no room for inputs.
    pub(crate) fn max_concurrent_inputs(demands: &Demands) -> Result<usize> {
        // Without the output's: it is taken into account later, and a pass writes only a part of it.
        let memory = left_for_buffers(demands.memory_bytes, demands.of_inputs).max(MIN_PASS_BYTES);
        let by_memory = Budget::inputs_in(memory, demands.input_unit);
        let by_files = usize::try_from(demands.files / FILES_PER_INPUT).unwrap_or(usize::MAX);
        let (room, sources) = (by_memory.min(by_files), demands.sources);
        if sources > MIN_CONCURRENT_INPUTS && sources + MIN_CONCURRENT_INPUTS > room {
            let (what, remedy) = if by_memory <= by_files {
                ("memory", "increase it")
            } else {
                ("the number of files that may be open", "raise that limit")
            };
            let enough = match room.saturating_sub(MIN_CONCURRENT_INPUTS) {
                0 => "is not enough for any of them".to_owned(),
                most => format!("is enough for only {most} of them"),
            };
            return Err(Error::InvalidInput(format!(
                "{sources} overlapping SSTables that provide tombstones must be read at the same time, but \
                 {what} {enough} in addition to the inputs: {remedy}, or merge without them"
            )));
        }
        Ok(room.saturating_sub(sources).max(MIN_CONCURRENT_INPUTS))
    }

    /// Number of inputs that fit into `memory_bytes`: each needs a window, a block decoded ahead and a block in its
    /// stored form. `input_unit` is their longest chunk length.
    fn inputs_in(memory_bytes: usize, input_unit: usize) -> usize {
        let unit = input_unit.max(4096);
        // Reads are in whole pages.
        let buffers = 2 * (unit + MIN_HEADROOM) + unit.next_multiple_of(4096) + 8192;
        memory_bytes / 4 * 3 / (buffers + READER_BYTES)
    }
}

/// Number of file descriptors that this process may still open for inputs.
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
                // A block ahead is the only one of a depth of 1; otherwise the next is taken before the current
                // one is recycled.
                let in_use = if depth > 1 { 2 } else { 1 };
                let decoded = (decoded + in_use) * (block_len + headroom);
                let per_request = (depth / 2).clamp(1, BLOCKS_PER_REQUEST);
                assert_eq!(depth % per_request, 0, "{inputs}: {budget:?}");
                let ranges = budget.concurrent_ranges;
                // The next range of each is read before its turn.
                let stored = depth * block_len * ranges.min(2);
                let used = inputs * ranges * (decoded + stored);
                let waiting = budget.ranges_in_flight * budget.buffered_bytes;
                assert!(
                    used + waiting <= memory / 8 * 7,
                    "{inputs}: {used} bytes, {budget:?}"
                );
            }
        }
    }

    /// Blocks are held in their stored form: the shorter it is, the more of them fit.
    #[test]
    fn compressed_inputs_are_read_further_ahead() {
        let readahead = |saved_percent| {
            let demands = Demands {
                saved_percent,
                ..demands(48 << 20, 4, 2, 16 << 10)
            };
            Budget::divide(&demands).decode
        };
        let plain = readahead(0);
        assert!(plain.depth >= 4, "{plain:?}");
        for (saved_percent, times) in [(50, 2), (75, 4), (99, 4), (200, 4)] {
            let compressed = readahead(saved_percent);
            assert_eq!(compressed.block_len, plain.block_len);
            // Depths are rounded down to whole requests, of up to eight blocks.
            let least = plain.depth * times / 2 + 1;
            assert!(
                (least..=(plain.depth + 1) * times).contains(&compressed.depth),
                "{saved_percent}: {compressed:?}, {plain:?}"
            );
        }
    }

    #[test]
    fn ranges_are_limited_by_memory() {
        let concurrent = |memory, inputs, threads| {
            Budget::divide(&demands(memory, inputs, threads, 16 << 10)).concurrent_ranges
        };
        assert_eq!(concurrent(64 << 20, 4, 1), 1);
        assert_eq!(concurrent(64 << 20, 4, 2), 2);
        assert!((3..=12).contains(&concurrent(64 << 20, 4, 32)));
        assert!(concurrent(1 << 30, 4, 32) == 32);
        assert_eq!(concurrent(64 << 20, 10_000, 32), 1);
        assert!(concurrent(1 << 20, 2, 8) < 4);
        for memory in [1usize << 20, 16 << 20, 64 << 20] {
            let budget = Budget::divide(&demands(memory, 3, 8, 16 << 10));
            let waits = budget.concurrent_ranges > 1;
            assert!(
                !waits || budget.buffered_bytes >= MIN_BUFFERED,
                "{budget:?}"
            );
        }
    }

    /// Passes of two inputs each take longer and hold more than passes of a few more.
    #[test]
    fn little_memory_is_planned_like_a_mebibyte() {
        let chunk = 16 << 10;
        let concurrent = |memory, chunk| {
            let demands = Demands {
                files: u64::MAX,
                ..demands(memory, 10_000, 2, chunk)
            };
            Budget::max_concurrent_inputs(&demands).unwrap()
        };
        let of_a_mebibyte = concurrent(1 << 20, chunk);
        assert!(of_a_mebibyte > 4);
        for memory in [0, 64 << 10, 128 << 10] {
            assert_eq!(concurrent(memory, chunk), of_a_mebibyte);
        }
        assert_eq!(
            concurrent(64 << 20, chunk),
            Budget::inputs_in(64 << 20, chunk)
        );
        // Long chunks do not fit as often, and two are merged at least.
        assert_eq!(concurrent(0, 1 << 20), 2);
    }

    #[test]
    fn descriptors_are_counted_with_memory() {
        let with = |files, sources| Demands {
            files,
            sources,
            ..demands(64 << 20, 100, 2, 16 << 10)
        };
        assert_eq!(Budget::max_concurrent_inputs(&with(40, 0)).unwrap(), 10);
        assert_eq!(Budget::max_concurrent_inputs(&with(40, 3)).unwrap(), 7);
        assert_eq!(Budget::max_concurrent_inputs(&with(0, 0)).unwrap(), 2);
        let error = Budget::max_concurrent_inputs(&with(40, 9))
            .unwrap_err()
            .to_string();
        assert!(error.contains("enough for only 8"), "{error}");
        assert!(Budget::divide(&with(600, 0)).keeps_indexes_open);
        assert!(!Budget::divide(&with(599, 0)).keeps_indexes_open);
    }

    #[test]
    fn reserved_memory_leaves_a_quarter() {
        assert_eq!(left_for_buffers(64 << 20, 10 << 20), 54 << 20);
        assert_eq!(left_for_buffers(64 << 20, usize::MAX), 16 << 20);
        assert_eq!(left_for_buffers(0, usize::MAX), 0);
    }

    /// Samples and promoted indexes read ahead stay within their shares for any size and number of inputs.
    #[test]
    fn planning_memory_is_bounded() {
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
        assert_eq!(of(1 << 30, 2).index_ahead, MAX_INDEX_AHEAD);
        let memory = (16 << 20) - 2 * THREAD_BYTES;
        assert_eq!(of(1 << 30, 16).index_ahead, memory / SIXTEENTH / 16);
        assert_eq!(of(1 << 30, 1000).index_ahead, MIN_INDEX_AHEAD);
    }

    #[test]
    fn a_block_holds_at_least_a_chunk() {
        let budget = Budget::divide(&demands(1 << 20, 1000, 2, 1 << 20));
        assert_eq!(budget.decode.block_len, 1 << 20);
        assert_eq!(budget.decode.depth, 1);
        assert!(budget.output_blocks >= 2);
    }
}
