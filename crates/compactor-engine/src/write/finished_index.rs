//! A complete index of an output.

use compactor_sstable::Component;
use compactor_sstable::big::summary::Summary;
use compactor_sstable::bloom_filter::BloomFilter;

/// A complete index of either format.
#[derive(Debug)]
pub struct FinishedIndex {
    /// The files, synced, and their lengths.
    pub files: Vec<(Component, u64)>,
    /// Bloom filter of all keys, if it was built along with the index; `None` at a false positive chance of 1.
    pub filter: Option<BloomFilter>,
    /// Summary of a BIG index, still to be written.
    pub summary: Option<Summary>,
    /// First partition key.
    pub first_key: Vec<u8>,
    /// Last partition key.
    pub last_key: Vec<u8>,
}
