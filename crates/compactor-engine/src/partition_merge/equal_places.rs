//! Clusterings and bounds that compare equal but may differ in their bytes: those that are written.

use std::cmp::Ordering;

use compactor_sstable::data::clustering::Kind;

use super::PartitionMerger;
use crate::partition_writer::BlockOutput;
use crate::sstable_index::SstableIndex;
use crate::window::BlockSource;

impl<S: BlockSource, B: BlockOutput, I: SstableIndex> PartitionMerger<S, B, I> {
    /// Puts the clustering of these inputs' rows into `prefix`. They compare equal, but equal decimals
    /// and varints may differ in their bytes: the least bytes are taken, so that neither the order
    /// of the inputs nor how they are grouped matters.
    ///
    /// Differs from Cassandra: it keeps those of whichever input its heap happens to give last.
    pub(super) fn least_clustering(&mut self, members: &[u32]) {
        self.prefix.clear();
        for &member in members {
            let input = &self.inputs[member as usize];
            self.bound.clear();
            if let (true, Some(row)) = (input.same_clustering, input.cursor.row()) {
                self.bound.extend_from_slice(row.clustering_bytes());
            } else if let Some(prefix) = input.cursor.clustering() {
                let values = prefix.spans.iter().map(|span| span.of(prefix.base));
                self.output.clustering.write_values(&mut self.bound, values);
            }
            if member == members[0] || self.bound < self.prefix {
                std::mem::swap(&mut self.bound, &mut self.prefix);
            }
        }
    }

    /// Notes the bound of these inputs' markers: as with rows, the least of those that compare equal
    /// but differ in their bytes. Returns on which side of rows it is.
    pub(super) fn note_bound(&mut self, members: &[u32]) -> Ordering {
        let mut side = Ordering::Equal;
        for &member in members {
            let Some(prefix) = self.inputs[member as usize].cursor.clustering() else {
                continue;
            };
            side = prefix.kind.compared_to_clustering();
            let values = prefix.spans.iter().map(|span| span.of(prefix.base));
            self.prefix.clear();
            // What kind it will be is known when it is written.
            self.output
                .clustering
                .write_prefix(&mut self.prefix, Kind::InclStartBound, values);
            if member == members[0] || self.prefix < self.bound {
                std::mem::swap(&mut self.bound, &mut self.prefix);
            }
        }
        side
    }
}
