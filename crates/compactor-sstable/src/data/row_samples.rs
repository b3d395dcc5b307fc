//! Rows for tests, which contain bytes where the crate has offsets.

use proptest::prelude::*;

use crate::data::cell::{Cell, Liveness, NO_TTL, Span};
use crate::data::clustering::ClusteringComparator;
use crate::data::columns::write_subset;
use crate::data::deletion_time::{DeletionTime, NO_DELETION_TIME};
use crate::data::encode::{RowFrame, RowShape};
use crate::data::layout::{ColumnLayout, Layout, TimestampDeltas};
use crate::data::row::{RowContent, RowRef};
use crate::data::stated_extremes::StatedExtremes;
use crate::data::unfiltered::{RowHead, UnfilteredHead, parse_head};
use crate::error::Result;
use crate::types::CqlType;
use crate::version::Version;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SampleCell {
    pub timestamp: i64,
    pub local_deletion_time: i64,
    pub ttl: i32,
    pub path: Vec<u8>,
    pub value: Vec<u8>,
}

impl SampleCell {
    pub fn live(timestamp: i64, path: &[u8], value: &[u8]) -> SampleCell {
        SampleCell {
            timestamp,
            local_deletion_time: NO_DELETION_TIME,
            ttl: NO_TTL,
            path: path.to_vec(),
            value: value.to_vec(),
        }
    }

    /// Copies a cell that was read from `bytes`.
    pub fn of(cell: &Cell, bytes: &[u8]) -> SampleCell {
        SampleCell {
            timestamp: cell.timestamp,
            local_deletion_time: cell.local_deletion_time,
            ttl: cell.ttl,
            path: cell.path.of(bytes).to_vec(),
            value: cell.value.of(bytes).to_vec(),
        }
    }

    /// Writes the cell from a row in which its path and value begin at `before` and are followed by `behind`
    /// bytes.
    pub fn put(
        &self,
        out: &mut Vec<u8>,
        layout: &Layout,
        column: &ColumnLayout,
        liveness: &Liveness,
        [before, behind]: [usize; 2],
    ) {
        let (path_len, value_len) = (self.path.len(), self.value.len());
        let row = [
            &vec![0x5a; before],
            &self.path[..],
            &self.value,
            &vec![0xa5; behind],
        ];
        let cell = Cell {
            timestamp: self.timestamp,
            local_deletion_time: self.local_deletion_time,
            ttl: self.ttl,
            path: Span::new(before as u32, path_len as u32),
            value: Span::new((before + path_len) as u32, value_len as u32),
            version: 0,
        };
        layout.put_cell(out, column, liveness, &cell, &row.concat());
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SampleColumn {
    pub index: usize,
    /// Deletion of a complex column.
    pub deletion: DeletionTime,
    /// One cell for a simple column.
    pub cells: Vec<SampleCell>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SampleRow {
    pub liveness: Liveness,
    pub deletion: DeletionTime,
    pub is_shadowable: bool,
    /// Ascending by index.
    pub columns: Vec<SampleColumn>,
}

impl SampleRow {
    pub fn write(&self, layout: &Layout, spare: [usize; 2]) -> Vec<u8> {
        let columns = &layout.regular_columns;
        let shape = RowShape {
            is_static: false,
            liveness: self.liveness,
            deletion: self.deletion,
            is_shadowable: self.is_shadowable,
            has_complex_deletion: self.columns.iter().any(|c| !c.deletion.is_live()),
            has_all_columns: self.columns.len() == columns.len(),
        };
        let mut out = Vec::new();
        let frame = RowFrame::begin(&mut out, &shape, &[], 77, 30);
        layout.put_body_start(&mut out, &shape);
        if !shape.has_all_columns {
            let present = self.columns.iter().map(|c| c.index).collect();
            write_subset(&mut out, columns.len(), &present);
        }
        for present in &self.columns {
            let column = &columns[present.index];
            if column.is_complex {
                let (deletion, count) = (&present.deletion, present.cells.len());
                layout.put_complex_header(&mut out, shape.has_complex_deletion, deletion, count);
            }
            for cell in &present.cells {
                cell.put(&mut out, layout, column, &self.liveness, spare);
            }
        }
        frame.end(&mut out);
        out
    }

    pub fn read(bytes: &[u8], head: &RowHead, layout: &Layout) -> Result<SampleRow> {
        let row = RowRef {
            bytes,
            head,
            layout,
        };
        row.read().map(|content| SampleRow::of(&content, bytes))
    }

    pub fn of(content: &RowContent, bytes: &[u8]) -> SampleRow {
        let columns = content.columns().map(|column| SampleColumn {
            index: column.index,
            deletion: column.deletion,
            cells: column
                .cells
                .iter()
                .map(|cell| SampleCell::of(cell, bytes))
                .collect(),
        });
        SampleRow {
            liveness: content.start.liveness,
            deletion: content.start.deletion,
            is_shadowable: content.start.is_shadowable,
            columns: columns.collect(),
        }
    }

    /// The content that its own deletions do not cover (`BTreeRow.Builder`).
    pub fn kept(&self, layout: &Layout) -> SampleRow {
        let mut kept = self.clone();
        if self.deletion.deletes(kept.liveness.timestamp) {
            kept.liveness = Liveness::EMPTY;
        }
        for column in &mut kept.columns {
            let floor = column.deletion.marked_for_delete_at;
            column
                .cells
                .retain(|cell| cell.timestamp >= floor && !self.deletion.deletes(cell.timestamp));
        }
        kept.columns.retain(|column| {
            layout.regular_columns[column.index].is_complex || !column.cells.is_empty()
        });
        if self.is_shadowable && kept.liveness.timestamp > self.deletion.marked_for_delete_at {
            kept.deletion = DeletionTime::LIVE;
            kept.is_shadowable = false;
        }
        kept
    }
}

/// Layout without clustering columns; `base` is the base of all deltas.
pub(super) fn layout(types: &[CqlType], version: Version, base: i64) -> Layout {
    let columns = types.iter().enumerate();
    Layout {
        version,
        min_timestamp: base,
        timestamp_deltas: TimestampDeltas::ANY,
        stated: StatedExtremes::ANY,
        min_local_deletion_time: base,
        min_ttl: base as i32,
        clustering: ClusteringComparator::new(&[]).unwrap(),
        static_columns: Vec::new(),
        regular_columns: columns
            .map(|(i, t)| ColumnLayout::new(vec![i as u8], t.clone()).unwrap())
            .collect(),
    }
}

pub(super) fn head(bytes: &[u8], layout: &Layout) -> RowHead {
    match parse_head(bytes, layout, bytes.len() as u64, &mut Vec::new()) {
        Ok(UnfilteredHead::Row(head)) => head,
        other => panic!("{other:?}"),
    }
}

/// Values of each length that is written in a different way: empty, short and long ones.
pub(super) fn values() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        Just(Vec::new()),
        prop::collection::vec(0u8.., 1..5),
        prop::collection::vec(0u8.., 1..40),
        prop::collection::vec(0u8.., 120..300),
    ]
}

/// Adjusts a value to the length that values of `column` have, unless it is empty.
pub(super) fn fitted(column: &ColumnLayout, mut value: Vec<u8>) -> Vec<u8> {
    if let (Some(len), false) = (column.fixed_len, value.is_empty()) {
        value.resize(len as usize, 9);
    }
    value
}
