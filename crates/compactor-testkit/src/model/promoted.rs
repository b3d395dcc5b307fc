//! The promoted index of a partition, from the positions of its unfiltereds.
//!
//! Source: `BigFormatPartitionWriter`, `IndexInfo.Serializer`, `RowIndexEntry`.

use compactor_sstable::data::deletion_time::DeletionTime;

use super::encode::{EncodedPartition, put_partition_deletion, put_uvint, serialized_clustering};
use super::table::{Header, Partition, Schema, Unfiltered};

struct Block {
    first: Vec<u8>,
    last: Vec<u8>,
    start: usize,
    width: usize,
    open: DeletionTime,
}

/// Blocks end with the unfiltered that makes them as long as `column_index_size`; the remainder is a block
/// that includes the partition's end byte. Empty for fewer than two blocks.
pub fn promoted_index(
    schema: &Schema,
    header: &Header,
    column_index_size: usize,
    partition: &Partition,
    place: &EncodedPartition,
) -> Vec<u8> {
    let mut blocks = Vec::new();
    let mut current: Option<Block> = None;
    let mut open_now = DeletionTime::LIVE;
    for (unfiltered, (begin, end)) in partition.unfiltereds.iter().zip(&place.unfiltereds) {
        let name = name(schema, unfiltered);
        if let Unfiltered::Marker { open, .. } = unfiltered {
            open_now = *open;
        }
        let mut block = current.take().unwrap_or_else(|| Block {
            first: name.clone(),
            last: Vec::new(),
            start: begin - place.start,
            width: 0,
            open: DeletionTime::LIVE,
        });
        block.last = name;
        block.open = open_now;
        block.width = end - place.start - block.start;
        if block.width >= column_index_size {
            blocks.push(block);
        } else {
            current = Some(block);
        }
    }
    if let Some(mut last) = current {
        last.width += 1;
        blocks.push(last);
    }
    if blocks.len() < 2 {
        return Vec::new();
    }
    let mut out = Vec::new();
    put_uvint(&mut out, (place.header_end - place.start) as u64);
    put_partition_deletion(&mut out, header.version, partition.deletion);
    put_uvint(&mut out, blocks.len() as u64);
    let infos_at = out.len();
    let mut offsets = Vec::new();
    for block in blocks {
        offsets.push((out.len() - infos_at) as u32);
        out.extend_from_slice(&block.first);
        out.extend_from_slice(&block.last);
        put_uvint(&mut out, block.start as u64);
        let width = block.width as i64 - 65_536;
        put_uvint(&mut out, ((width << 1) ^ (width >> 63)) as u64);
        out.push(u8::from(!block.open.is_live()));
        if !block.open.is_live() {
            put_partition_deletion(&mut out, header.version, block.open);
        }
    }
    for offset in offsets {
        out.extend_from_slice(&offset.to_be_bytes());
    }
    out
}

fn name(schema: &Schema, unfiltered: &Unfiltered) -> Vec<u8> {
    match unfiltered {
        Unfiltered::Row { clustering, .. } => {
            let mut out = vec![4];
            out.extend_from_slice(&serialized_clustering(schema, clustering));
            out
        }
        Unfiltered::Marker { kind, bound, .. } => {
            let mut out = vec![*kind as u8];
            out.extend_from_slice(&(bound.len() as u16).to_be_bytes());
            out.extend_from_slice(&serialized_clustering(schema, bound));
            out
        }
    }
}
