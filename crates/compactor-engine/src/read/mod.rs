//! Reading one `Data.db`: from stored bytes to rows.
//!
//! `decode` reads ahead blocks of whole chunks (`stored_blocks`); chunks are decompressed by the thread that needs them next, or earlier by threads that wait
//! for something else (`workers`). `window` presents blocks as contiguous bytes, and `cursor` parses them into rows
//! without copying.

pub(crate) mod batch;
pub(crate) mod cursor;
pub(crate) mod data_trace;
pub(crate) mod decode;
pub(crate) mod encoding;
pub(crate) mod expected_partitions;
pub(crate) mod hex;
pub(crate) mod input_trace;
pub(crate) mod key_position_checksum;
pub(crate) mod parallel_map;
pub(crate) mod rate_limiter;
pub(crate) mod reading;
pub(crate) mod row_counts;
pub(crate) mod stored_blocks;
pub(crate) mod trace_batch;
pub(crate) mod whole_file;
pub(crate) mod window;
pub(crate) mod workers;

pub use batch::Batch;
pub use compactor_sstable::data::row::RowRef;
pub use cursor::Cursor;
pub use data_trace::DataTrace;
pub use decode::DecodedBlocks;
pub use encoding::Encoding;
pub use hex::hex;
pub use input_trace::InputTrace;
pub use key_position_checksum::KeyPositionChecksum;
pub use parallel_map::{parallel_for, parallel_map};
pub use rate_limiter::RateLimiter;
pub use reading::{DecodeOptions, Reading};
pub use row_counts::RowCounts;
pub use trace_batch::{TraceBatch, TraceEvent};
pub use window::{Block, BlockSource, HEADROOM, MemorySource};
pub use workers::Workers;
