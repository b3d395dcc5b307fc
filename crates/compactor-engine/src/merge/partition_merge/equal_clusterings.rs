//! Choice between clusterings and bounds that compare equal but may differ in their bytes.
//!
//! Source: `Row.Merger.add`, `RangeTombstoneMarker.Merger.add`, which keep the last one added.

use std::cmp::Ordering;

use compactor_sstable::data::clustering::Kind;
use compactor_sstable::data::layout::Layout;

use super::PartitionMerger;
use crate::merge::merge_input::MergeInput;
use crate::read::window::BlockSource;
use crate::write::partition_sink::PartitionSink;

impl<S: BlockSource, O: PartitionSink> PartitionMerger<S, O> {
    /// Records the bound of these inputs' markers: of those that compare equal but differ in their bytes, the
    /// choice is that of rows. Returns the side of the rows.
    pub(super) fn note_bound(&mut self, members: &[u32]) -> Ordering {
        let mut side = Ordering::Equal;
        let members = candidates(members, self.in_cassandra_order);
        for &member in members {
            let Some(prefix) = self.inputs[member as usize].cursor.clustering() else {
                continue;
            };
            side = prefix.kind.compared_to_clustering();
            let values = prefix.spans.iter().map(|span| span.of(prefix.base));
            self.prefix.clear();
            // The kind is not known until the marker is written.
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

/// Inputs of which the least bytes are chosen: only the last that Cassandra visits, if its choice is
/// reproduced and the inputs are in its order.
pub(super) fn candidates(members: &[u32], in_cassandra_order: bool) -> &[u32] {
    match members {
        [.., last] if in_cassandra_order => std::slice::from_ref(last),
        all => all,
    }
}

/// Copies the clustering of these inputs' rows to `least`. They compare equal, but equal decimals and varints
/// may differ in their bytes: the least bytes are chosen, so that neither the order nor the grouping of the
/// inputs matters. `other` is a buffer for one more clustering.
pub(super) fn least_clustering<S: BlockSource>(
    inputs: &[MergeInput<S>],
    output: &Layout,
    members: &[u32],
    least: &mut Vec<u8>,
    other: &mut Vec<u8>,
) {
    least.clear();
    for &member in members {
        let input = &inputs[member as usize];
        other.clear();
        if let (true, Some(row)) = (input.same_clustering, input.cursor.row()) {
            other.extend_from_slice(row.clustering_bytes());
        } else if let Some(prefix) = input.cursor.clustering() {
            let values = prefix.spans.iter().map(|span| span.of(prefix.base));
            output.clustering.write_values(other, values);
        }
        if member == members[0] || other < least {
            std::mem::swap(other, least);
        }
    }
}
