//! Conversion of a cursor's content to a table in memory.

use std::collections::BTreeMap;

use compactor_engine::read::{BlockSource, Cursor, RowRef};
use compactor_engine::{Error, Result};

use super::table::{Cell, ColumnData, Partition, Row, Schema, Table, Unfiltered};

/// Reads everything.
pub fn decode<S: BlockSource>(schema: &Schema, cursor: &mut Cursor<S>) -> Result<Table> {
    let mut table = Table::new();
    while cursor.next_partition()? {
        let key = (cursor.token(), cursor.key().to_vec());
        let mut partition = Partition {
            deletion: cursor.partition_deletion(),
            static_row: match cursor.static_row() {
                Some(row) => decode_row(schema, &row).map_err(|e| cursor.locate_error(e))?,
                None => Row::empty(),
            },
            unfiltereds: Vec::new(),
        };
        loop {
            cursor.next_unfiltered()?;
            let Some(prefix) = cursor.clustering() else {
                break;
            };
            let values = prefix.values().map(|value| value.map(<[u8]>::to_vec));
            let values = values.collect();
            partition
                .unfiltereds
                .push(match (cursor.row(), cursor.marker()) {
                    (Some(row), None) => {
                        let row = decode_row(schema, &row).map_err(|e| cursor.locate_error(e))?;
                        Unfiltered::Row {
                            clustering: values,
                            row,
                        }
                    }
                    (None, Some(marker)) => Unfiltered::Marker {
                        kind: marker.kind,
                        bound: values,
                        close: marker.close,
                        open: marker.open,
                    },
                    _ => return Err(Error::Internal("neither row nor marker".to_owned())),
                });
        }
        table.insert(key, partition);
    }
    Ok(table)
}

fn decode_row(
    schema: &Schema,
    row: &RowRef<'_>,
) -> std::result::Result<Row, compactor_sstable::Error> {
    let content = row.read()?;
    let start = &content.start;
    let mut decoded = Row {
        liveness: start.liveness,
        deletion: start.deletion,
        is_shadowable: start.is_shadowable,
        columns: BTreeMap::new(),
    };
    let is_static = row.head.is_static();
    for found in content.columns() {
        let column = &row.layout.columns(is_static)[found.index];
        let data = ColumnData {
            deletion: found.deletion,
            cells: found.cells.iter().map(|c| owned(c, row.bytes)).collect(),
        };
        let is_this = |c: &super::table::Column| c.name == column.name && c.is_static == is_static;
        let index = schema.columns.iter().position(is_this);
        if let Some(index) = index
            && !(data.deletion.is_live() && data.cells.is_empty())
        {
            decoded.columns.insert(index, data);
        }
    }
    Ok(decoded)
}

fn owned(cell: &compactor_sstable::data::cell::Cell, row: &[u8]) -> Cell {
    Cell {
        timestamp: cell.timestamp,
        local_deletion_time: cell.local_deletion_time,
        ttl: cell.ttl,
        path: cell.path.of(row).to_vec(),
        value: cell.value.of(row).to_vec(),
    }
}
