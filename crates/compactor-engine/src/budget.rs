//! Memory is a budget: what inputs and output may hold at a time.

use crate::decode::DecodeOptions;
use crate::window::HEADROOM;

/// Requests that a readahead is cut into.
const REQUESTS: usize = 4;
/// Longest block that is decoded as one task, uncompressed bytes.
const MAX_BLOCK_LEN: usize = 1 << 20;
/// What is read ahead per input where memory allows and nothing is asked for.
const DEFAULT_READAHEAD: usize = 4 << 20;
/// Least bytes in front of a block's data: longer rows that straddle two blocks are copied more often.
const MIN_HEADROOM: usize = 4 << 10;
/// What an input takes beside its buffers while it is read: cursor, channel, open files. Estimated.
const READER_BYTES: usize = 16 << 10;
/// Buffers that a pass has at least, however little memory is asked for.
const LEAST_PASS_BYTES: usize = 1 << 20;

/// How the memory is divided.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Readahead of each input.
    pub decode: DecodeOptions,
    /// Blocks of the output being compressed or waiting to be written.
    pub output_blocks: usize,
    /// Buffer of the output's writer, bytes.
    pub write_buffer_bytes: usize,
    /// Buffers of the output's writer.
    pub write_buffers: usize,
}

impl Budget {
    /// Divides `memory_bytes` over `inputs` inputs and the output. A quarter goes to the output; the
    /// rest to the inputs, each of which needs room for the stored and the decoded form of what it
    /// reads ahead. `input_unit` and `output_unit` are chunk lengths: no block is shorter.
    pub fn divide(
        memory_bytes: usize,
        inputs: usize,
        threads: usize,
        readahead_bytes: Option<usize>,
        input_unit: usize,
        output_unit: usize,
    ) -> Budget {
        let input_unit = input_unit.max(4096);
        let per_input = memory_bytes / 4 * 3 / inputs.max(1);
        let headroom = (per_input / 32).clamp(MIN_HEADROOM, HEADROOM) / MIN_HEADROOM * MIN_HEADROOM;
        // What is read ahead takes memory as it is stored and as it is decoded; one block is in use.
        let behind_headroom = per_input.saturating_sub(headroom * (REQUESTS + 1));
        let affordable = behind_headroom / (2 * REQUESTS + 1) * REQUESTS;
        let readahead = readahead_bytes.unwrap_or(DEFAULT_READAHEAD).min(affordable);
        let block_len = (readahead / REQUESTS).clamp(input_unit, MAX_BLOCK_LEN.max(input_unit));
        let depth = (readahead / block_len).max(if affordable < 2 * input_unit { 1 } else { 2 });
        let output = memory_bytes / 4;
        let block = (256usize << 10).max(output_unit);
        let output_blocks =
            (output / 2 / (2 * block)).clamp(2, Budget::most_output_blocks(threads));
        // A power of two, rounded down.
        let write_buffer_bytes = 1 << (output / 2 / 4).clamp(64 << 10, 1 << 20).ilog2();
        Budget {
            decode: DecodeOptions {
                block_len,
                depth,
                headroom,
            },
            output_blocks,
            write_buffer_bytes,
            write_buffers: 4,
        }
    }
}

impl Budget {
    /// Blocks of an output that keep so many threads at work while the merge sleeps until half of them are
    /// free. Where memory does not allow as many, it sleeps for fewer.
    pub fn most_output_blocks(threads: usize) -> usize {
        2 * threads.max(1) + 4
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

    #[test]
    fn more_inputs_read_less_ahead_each() {
        let chunk = 16 << 10;
        let memory = 64 << 20;
        let most = Budget::inputs_at_once(memory, chunk);
        for inputs in [1usize, 2, 16, 100, 300, most / 2, most - 1, most] {
            let budget = Budget::divide(memory, inputs, 2, None, chunk, chunk);
            let DecodeOptions {
                block_len,
                depth,
                headroom,
            } = budget.decode;
            assert!(block_len >= chunk && depth >= 1, "{inputs}: {budget:?}");
            let decoded = (depth + 1) * (block_len + headroom);
            let used = inputs * (decoded + depth * block_len);
            assert!(used <= memory / 4 * 3, "{inputs}: {used} bytes");
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
        let budget = Budget::divide(1 << 20, 1000, 2, None, 1 << 20, 1 << 20);
        assert_eq!(budget.decode.block_len, 1 << 20);
        assert_eq!(budget.decode.depth, 1);
        assert!(budget.output_blocks >= 2);
    }
}
