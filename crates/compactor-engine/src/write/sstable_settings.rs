//! Settings of an output.

use compactor_sstable::compression::info::CompressionParams;
use compactor_sstable::descriptor::Descriptor;
use compactor_sstable::statistics::{CollectorSettings, SerializationHeader};

/// Settings of an output.
#[derive(Clone, Debug)]
pub struct SstableSettings {
    /// Directory, version and id.
    pub descriptor: Descriptor,
    /// Columns, types and delta bases.
    pub header: SerializationHeader,
    /// Compression parameters; `None` for no compression.
    pub compression: Option<CompressionParams>,
    /// False positive chance of the Bloom filter; 1.0 for none.
    pub bloom_filter_fp_chance: f64,
    /// Expected number of keys, which determines the size of the Bloom filter.
    pub expected_keys: u64,
    /// Number of keys per entry of the summary; BTI has none.
    pub min_index_interval: u32,
    /// Bytes after which a block of the row index ends.
    pub column_index_size: u64,
    /// Metadata inherited from the inputs.
    pub collector: CollectorSettings,
}
