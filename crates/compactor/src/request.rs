//! A request to merge what was found, with what the table's schema says.

use std::path::PathBuf;

use crate::catalog::Catalog;
use crate::merge::MergeRequest;

impl Catalog {
    /// Asks for a merge of all SSTables that were found. From the schema come types, dropped columns, the
    /// Bloom filter's chance, the summary's interval, and how long tombstones must live. Without a schema,
    /// or without `gc_grace_seconds` in it, nothing is purged: which deletions other replicas have is not
    /// known.
    ///
    /// The [scope](MergeRequest::scope) is for the caller to say: as long as it is unknown, every tombstone
    /// is kept.
    pub fn merge_request(&self, output_directory: impl Into<PathBuf>) -> MergeRequest {
        let mut request = MergeRequest::new(self.sstables.clone(), output_directory);
        let Some((_, table)) = &self.schema else {
            return request;
        };
        let options = &table.options;
        let grace = options.gc_grace_seconds.map(i64::from);
        request.gc_before_s = grace.map(|seconds| request.now_s - seconds);
        request.only_purge_repaired = table.only_purge_repaired_tombstones();
        request.bloom_filter_fp_chance = options.bloom_filter_fp_chance;
        if let Some(interval) = options.min_index_interval {
            request.min_index_interval = interval.max(1);
        }
        request.table = Some(table.clone());
        request
    }
}
