//! Chunk-length experiment: the same foreground load on the same rows, stored in chunks of several lengths
//! with several compressors, alone and during a compaction.
//!
//! The rows are made once, and each variant is written from them, one SSTable from each; but for the
//! chunks the files are the same to the byte. So are the hot rows, the order in which they are read and
//! the compaction meanwhile, of the SSTables that the variants were written from. What
//! differs is how much of the disk a read of a row needs, how much page cache the hot rows take, and
//! what decompression costs.

mod background;
mod experiment;
mod options;
mod outcome;
mod run;
mod variant;
mod written;

pub use experiment::compare;
pub use options::ChunkLengthOptions;
pub use outcome::{
    BackgroundRecord, ChunkLengthOutcome, Reading, Reads, VariantRecord, VariantRun,
};
pub(crate) use run::holds_rate;
pub use variant::{Compressor, Variant};
