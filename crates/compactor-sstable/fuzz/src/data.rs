//! Data.db: partitions, rows, markers and cells, in the layout of any header.

use compactor_sstable::data::clustering::{ClusteringComparator, Kind, Prefix, ValueSpan};
use compactor_sstable::data::layout::{ColumnLayout, Layout, TimestampDeltas, check_column_order};
use compactor_sstable::data::partition::PartitionHead;
use compactor_sstable::data::row::RowRef;
use compactor_sstable::data::stated_extremes::StatedExtremes;
use compactor_sstable::data::unfiltered::{RowHead, UnfilteredHead, parse_head, parse_static_head};
use compactor_sstable::statistics::{HeaderColumn, SerializationHeader, Statistics};
use compactor_sstable::{Result, Version};

use crate::statistics::repair_checksums;
use crate::values::value;
use crate::{take, version};

/// Input: version, length of a Statistics.db, that file, and uncompressed Data.db.
///
/// # Panics
/// If a structure ends beyond the bytes in which it was found.
pub fn data(data: &[u8]) {
    count_partitions(data);
}

/// Runs the harness and returns the number of whole partitions, so that a test can check that it parses any.
pub fn count_partitions(data: &[u8]) -> usize {
    let Some((version, statistics, mut bytes)) = parts(data) else {
        return 0;
    };
    let Ok(layout) = layout_of(&statistics.header, version) else {
        return 0;
    };
    let mut count = 0;
    while let Some(len) = partition(bytes, &layout, &statistics.header) {
        assert!(0 < len && len <= bytes.len());
        bytes = &bytes[len..];
        count += 1;
    }
    count
}

fn parts(mut data: &[u8]) -> Option<(Version, Statistics, &[u8])> {
    let [selector] = take(&mut data)?;
    let len = take(&mut data).map(u16::from_be_bytes)?;
    let (statistics, bytes) = data.split_at_checked(usize::from(len))?;
    let version = version(selector);
    let mut statistics = statistics.to_vec();
    repair_checksums(&mut statistics, version);
    let statistics = Statistics::parse(&statistics, version).ok()?;
    Some((version, statistics, bytes))
}

/// Length of the partition at the start of `bytes`; `None` if it is damaged or truncated.
fn partition(bytes: &[u8], layout: &Layout, header: &SerializationHeader) -> Option<usize> {
    let head = PartitionHead::parse(bytes, layout.version).ok()?;
    let key = head.key(bytes);
    assert_eq!(key.len(), head.key_len);
    value(&header.key_type.cql_type, key);
    let mut pos = head.len;
    if layout.has_static() {
        let rest = &bytes[pos..];
        let head = parse_static_head(rest, layout, rest.len() as u64).ok()?;
        row(rest, &head, layout)?;
        pos += head.len;
    }
    let (mut spans, mut last_spans) = (Vec::<ValueSpan>::new(), Vec::new());
    let mut last: Option<(Kind, usize)> = None;
    loop {
        let rest = &bytes[pos..];
        let head = parse_head(rest, layout, rest.len() as u64, &mut spans).ok()?;
        let (kind, len) = match head {
            UnfilteredHead::EndOfPartition => return Some(pos + 1),
            UnfilteredHead::Row(head) => {
                row(rest, &head, layout)?;
                (Kind::Clustering, head.len)
            }
            UnfilteredHead::Marker(head) => (head.kind, head.len),
        };
        assert!(0 < len && len <= rest.len());
        let current = Prefix {
            kind,
            base: rest,
            spans: &spans,
        };
        for (column, bytes) in header.clustering_types.iter().zip(current.values()) {
            value(&column.cql_type, bytes.unwrap_or_default());
        }
        if let Some((kind, at)) = last {
            let before = Prefix {
                kind,
                base: &bytes[at..],
                spans: &last_spans,
            };
            let _ = layout.clustering.compare(before, current);
        }
        last = Some((kind, pos));
        std::mem::swap(&mut spans, &mut last_spans);
        pos += len;
    }
}

/// Reads all cells of a row; `None` if it is damaged.
fn row(bytes: &[u8], head: &RowHead, layout: &Layout) -> Option<()> {
    assert!(head.len <= bytes.len() && head.body_start <= head.len);
    let row = RowRef {
        bytes,
        head,
        layout,
    };
    let content = row.read().ok()?;
    for part in content.columns() {
        let column = layout.columns(head.is_static()).get(part.index)?;
        assert!(part.cells.len() <= bytes.len());
        assert!(column.is_complex || part.cells.len() == 1);
        for cell in part.cells {
            let (path, bytes) = (cell.path.of(bytes), cell.value.of(bytes));
            assert!(path.len() == cell.path.len() && bytes.len() == cell.value.len());
            if !column.is_complex {
                value(&column.cql_type, bytes);
                continue;
            }
            if let Some(path_type) = column.cql_type.path_type() {
                value(path_type, path);
            }
            if let Some(cell_type) = column.cql_type.cell_type(path) {
                value(cell_type, bytes);
            }
        }
    }
    Some(())
}

/// Returns the layout that a header describes.
pub(crate) fn layout_of(header: &SerializationHeader, version: Version) -> Result<Layout> {
    let columns = |columns: &[HeaderColumn]| -> Result<Vec<ColumnLayout>> {
        let columns = columns
            .iter()
            .map(|c| ColumnLayout::new(c.name.clone(), c.column_type.cql_type.clone()))
            .collect::<Result<Vec<_>>>()?;
        check_column_order(&columns)?;
        Ok(columns)
    };
    let clustering: Vec<_> = header
        .clustering_types
        .iter()
        .map(|t| t.cql_type.clone())
        .collect();
    Ok(Layout {
        version,
        min_timestamp: header.encoding_stats.min_timestamp,
        timestamp_deltas: TimestampDeltas::ANY,
        stated: StatedExtremes::ANY,
        min_local_deletion_time: header.encoding_stats.min_local_deletion_time,
        min_ttl: header.encoding_stats.min_ttl,
        clustering: ClusteringComparator::new(&clustering)?,
        static_columns: columns(&header.static_columns)?,
        regular_columns: columns(&header.regular_columns)?,
    })
}
