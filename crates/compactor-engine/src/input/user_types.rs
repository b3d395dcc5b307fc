//! User types of SSTables before 4.0 that the header does not state to be frozen.
//!
//! Cassandra 3.0 knows only frozen user types, and writes them without `FrozenType`; since 3.6, a type written so has a
//! cell per field. Both write the same versions: 3.0 wrote `ma` to `me`. Cassandra has the types of the schema for
//! columns, which a header alone does not tell (CASSANDRA-15035). Here the rows tell: with the other type they do not
//! end where their sizes state, or hold invalid values.
//!
//! Source: `SerializationHeader.Component.toHeader`, `SSTableHeaderFix`.

use std::sync::Arc;

use compactor_io::{Io, ReadMode};
use compactor_sstable::data::layout::Layout;
use compactor_sstable::data::row::{RowContent, RowRef};
use compactor_sstable::descriptor::Descriptor;
use compactor_sstable::partitioner::Partitioner;
use compactor_sstable::statistics::Statistics;
use compactor_sstable::{Component, Error as FormatError};

use crate::error::{Error, Result};
use crate::input::component_list::ComponentList;
use crate::input::header_union::layout_of;
use crate::input::stored_form::read_encoding;
use crate::read::cursor::Cursor;
use crate::read::whole_file::read_ahead;
use crate::read::workers::Workers;

/// By how many rows one reading must be the better one, so that damaged rows do not decide.
const MAJORITY: i32 = 16;

/// Freezes user types that the header does not state to be frozen but which are, as the rows show. `Data.db` is read
/// up to some rows with such a column.
///
/// # Errors
/// Unsupported if all rows can be read with both types, but are different ones then. The system refuses a thread.
pub fn freeze_user_types(
    io: &Io,
    mode: ReadMode,
    descriptor: &Descriptor,
    statistics: &mut Statistics,
) -> Result<()> {
    if !descriptor.version.may_omit_frozen_type() {
        return Ok(());
    }
    statistics.header.freeze_user_types_of_keys();
    let stated = &statistics.header;
    if !stated.has_multi_cell_user_types() {
        return Ok(());
    }
    let mut frozen = stated.clone();
    frozen.freeze_user_types_of_columns();
    let version = descriptor.version;
    let (Ok(partitioner), Ok(of_stated), Ok(of_frozen)) = (
        Partitioner::from_class_name(&statistics.validation.partitioner),
        layout_of(stated, version),
        layout_of(&frozen, version),
    ) else {
        // Reported when it is read next.
        return Ok(());
    };
    let mut readings = Readings {
        stated: Reading::new(of_stated),
        frozen: Reading::new(of_frozen),
        lead: 0,
        is_ambiguous: false,
    };
    // Damage is reported when the whole file is read.
    let is_whole = readings.read(io, mode, descriptor, partitioner).is_ok();
    if readings.lead > 0 {
        statistics.header = frozen;
    } else if readings.lead == 0 && readings.is_ambiguous && is_whole {
        let error = FormatError::unsupported(
            "user types that may be frozen or not: the header of Cassandra 3 does not tell, and the rows can be read \
             either way. Rewrite the file on a node, which knows the table's schema: nodetool upgradesstables",
        );
        return Err(Error::format(descriptor, Component::Statistics)(error));
    }
    Ok(())
}

/// Both readings of the rows of an SSTable.
struct Readings {
    stated: Reading,
    frozen: Reading,
    /// Number of rows that only the frozen types read, less the number that only the stated ones read.
    lead: i32,
    /// Whether a row has other columns by the one reading than by the other, or one of such a type.
    is_ambiguous: bool,
}

impl Readings {
    /// Reads rows until one of the readings is clearly the right one.
    fn read(
        &mut self,
        io: &Io,
        mode: ReadMode,
        descriptor: &Descriptor,
        partitioner: Partitioner,
    ) -> Result<()> {
        let path = descriptor.path(Component::Data);
        let file = io.open(&path, mode)?;
        let files = ComponentList::known(descriptor)?;
        let encoding = read_encoding(io, mode, descriptor, &files, file.len(), &mut Vec::new())?;
        let workers = Workers::start(1)?;
        let blocks = read_ahead(file, Arc::new(encoding), &workers);
        // The types of columns have no influence on where rows begin.
        let layout = Arc::clone(&self.stated.layout);
        let mut cursor = Cursor::new(blocks, layout, partitioner, path);
        while cursor.next_partition()? {
            if let Some(row) = cursor.static_row() {
                self.count(row);
            }
            loop {
                cursor.next_unfiltered()?;
                if let Some(row) = cursor.row() {
                    self.count(row);
                } else if cursor.clustering().is_none() {
                    break;
                }
                if self.lead.abs() >= MAJORITY {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn count(&mut self, row: RowRef<'_>) {
        match (self.stated.reads(row), self.frozen.reads(row)) {
            (true, false) => self.lead -= 1,
            (false, true) => self.lead += 1,
            (true, true) => {
                let is_static = row.head.is_static();
                let columns = self.stated.columns(is_static);
                self.is_ambiguous |= !columns.eq(self.frozen.columns(is_static));
            }
            (false, false) => {}
        }
    }
}

/// Reading of rows by one layout.
struct Reading {
    layout: Arc<Layout>,
    content: RowContent,
}

impl Reading {
    fn new(layout: Layout) -> Reading {
        Reading {
            layout: Arc::new(layout),
            content: RowContent::default(),
        }
    }

    /// Whether the row is one of this layout, with valid values.
    fn reads(&mut self, row: RowRef<'_>) -> bool {
        let layout = &self.layout;
        let row = RowRef { layout, ..row };
        if row.read_into(&mut self.content).is_err() {
            return false;
        }
        let layouts = layout.columns(row.head.is_static());
        self.content.columns().all(|column| {
            let cql_type = &layouts[column.index].cql_type;
            let mut cells = column.cells.iter().filter(|cell| !cell.is_tombstone());
            cells.all(|cell| {
                let cell_type = cql_type.cell_type(cell.path.of(row.bytes));
                cell_type.is_some_and(|t| t.validate(cell.value.of(row.bytes)).is_ok())
            })
        })
    }

    /// Names of the columns of the row that was read, and whether they have several cells.
    fn columns(&self, is_static: bool) -> impl Iterator<Item = (&[u8], bool)> {
        let layouts = self.layout.columns(is_static);
        self.content.columns().map(|column| {
            let layout = &layouts[column.index];
            (&layout.name[..], layout.is_complex)
        })
    }
}
