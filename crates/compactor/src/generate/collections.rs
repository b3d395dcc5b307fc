//! Shape `collections`: sets and lists, also in the static row, that are inserted whole, and elements that are added,
//! set and removed.
//!
//! An element of a list is under the UUID of the moment at which it was added. That moment follows from the row and the
//! SSTable alone, so that the next SSTable can name it, to set the element anew or to remove it.

use std::sync::Arc;

use compactor_sstable::data::deletion_time::DeletionTime;
use compactor_sstable::types::CqlType;

use super::output::{CellTimes, RowBuffer};
use super::random::Random;
use super::sequence::{self, RowPosition, Rows, Statement, deletion_at};
use super::table::TableColumns;
use super::tags;
use super::values::Values;
use super::{GenerateOptions, SECOND_US, sstable_timestamp};
use crate::time_uuid::{ticks_of, time_uuid};

/// Regular columns, in header order: sets and lists follow the others.
const AMOUNT: u32 = 0;
const EVENTS: u32 = 1;
const TAGS: u32 = 2;
const COLUMNS: u32 = 3;
/// Static ones.
const OWNER: u32 = 0;
const ROLES: u32 = 1;
/// Elements of a list that is inserted, at most.
const LONGEST_LIST: u64 = 4;
/// Variant, clock sequence and a node's address that is no network card's.
const NODE: i64 = 0xb52c_e1f0_7a3d_9c45_u64 as i64;

pub(super) fn columns() -> TableColumns {
    let text = Arc::new(CqlType::Utf8);
    let set = CqlType::Set {
        element: Arc::clone(&text),
        multi_cell: true,
    };
    let list = CqlType::List {
        element: text,
        multi_cell: true,
    };
    sequence::columns(
        vec![("owner", CqlType::Utf8), ("roles", set.clone())],
        vec![("amount", CqlType::Int32), ("events", list), ("tags", set)],
    )
}

#[derive(Debug)]
pub(super) struct Collections<'o> {
    options: &'o GenerateOptions,
    values: Values,
    own_lists: ListTimes,
    /// List times of the previous SSTable.
    earlier_lists: Option<ListTimes>,
}

/// Times at which an SSTable's list elements were added.
#[derive(Clone, Copy, Debug)]
struct ListTimes {
    sstable: u32,
    first_timestamp: i64,
}

impl ListTimes {
    fn of(options: &GenerateOptions, sstable: u32) -> ListTimes {
        ListTimes {
            sstable,
            first_timestamp: sstable_timestamp(options, sstable),
        }
    }

    /// Appends the path of the row's element `number`; they ascend.
    fn put_path(&self, seed: u64, place: RowPosition, number: u64, out: &mut Vec<u8>) -> usize {
        let row = [
            u64::from(self.sstable),
            place.partition,
            u64::from(place.row),
            16,
        ];
        let within = Random::of(seed, &row).below(3600 * SECOND_US as u64) as i64;
        let ticks = ticks_of(self.first_timestamp + within) + number as i64;
        let uuid = time_uuid(ticks, NODE);
        out.extend_from_slice(&uuid);
        uuid.len()
    }
}

impl Collections<'_> {
    pub(super) fn new(options: &GenerateOptions, sstable: u32) -> Collections<'_> {
        Collections {
            options,
            values: Values::new(options.compressibility),
            own_lists: ListTimes::of(options, sstable),
            earlier_lists: sstable
                .checked_sub(1)
                .map(|earlier| ListTimes::of(options, earlier)),
        }
    }

    fn put_amount(&self, random: &mut Random, statement: Statement, row: &mut RowBuffer) {
        let amount = random.below(1_000_000) as i32;
        row.values.extend_from_slice(&amount.to_be_bytes());
        let times = statement.times_or_deleted(random, self.options.cell_tombstones);
        row.end_cell_at(AMOUNT, times);
    }

    fn put_owner(&self, random: &mut Random, statement: Statement, row: &mut RowBuffer) {
        self.values.put_text(random, 12, &mut row.values);
        let times = statement.times_or_deleted(random, self.options.cell_tombstones);
        row.end_cell_at(OWNER, times);
    }

    fn put_set(&self, random: &mut Random, column: u32, statement: Statement, row: &mut RowBuffer) {
        tags::put(
            random,
            column,
            statement,
            self.options.cell_tombstones,
            row,
            |_, _| {},
        );
    }

    fn put_whole_list(
        &self,
        random: &mut Random,
        place: RowPosition,
        timestamp: i64,
        row: &mut RowBuffer,
    ) {
        row.begin_column(EVENTS, deletion_at(timestamp - 1));
        for number in 0..random.below(LONGEST_LIST + 1) {
            self.put_event(
                random,
                (self.own_lists, place, number),
                CellTimes::OfRow,
                row,
            );
        }
    }

    /// An element that the SSTable before has added is set anew or removed, and up to two are added.
    fn change_list(
        &self,
        random: &mut Random,
        place: RowPosition,
        written: i64,
        row: &mut RowBuffer,
    ) {
        row.begin_column(EVENTS, DeletionTime::LIVE);
        let mut fewest = 1;
        if let Some(earlier) = self.earlier_lists
            && place.is_shared
            && random.happens(0.5)
        {
            // One of those that most lists have.
            let number = random.below(2);
            let times =
                Statement::Update(written).times_or_deleted(random, self.options.cell_tombstones);
            self.put_event(random, (earlier, place, number), times, row);
            fewest = 0;
        }
        for number in 0..fewest + random.below(2) {
            let element = (self.own_lists, place, number);
            self.put_event(random, element, CellTimes::At(written), row);
        }
    }

    fn put_event(
        &self,
        random: &mut Random,
        (lists, place, number): (ListTimes, RowPosition, u64),
        times: CellTimes,
        row: &mut RowBuffer,
    ) {
        let path_len = lists.put_path(self.options.seed, place, number, &mut row.values);
        self.values
            .put_text(random, self.options.value_len as usize, &mut row.values);
        row.end_element(path_len, times);
    }
}

impl Rows for Collections<'_> {
    fn columns(&self) -> u32 {
        COLUMNS
    }

    fn put_static(&self, random: &mut Random, timestamp: i64, row: &mut RowBuffer) -> bool {
        if !random.happens(self.options.updates) {
            let statement = Statement::Insert(timestamp);
            self.put_owner(random, statement, row);
            self.put_set(random, ROLES, statement, row);
            return true;
        }
        // At least one column: each has a bit.
        let columns = 1 + random.below(3);
        let written = timestamp + random.below(SECOND_US as u64) as i64;
        if columns & (1 << OWNER) != 0 {
            self.put_owner(random, Statement::Update(timestamp), row);
        }
        if columns & (1 << ROLES) != 0 {
            self.put_set(random, ROLES, Statement::Update(written), row);
        }
        true
    }

    fn put_column(
        &self,
        random: &mut Random,
        column: u32,
        place: RowPosition,
        statement: Statement,
        row: &mut RowBuffer,
    ) {
        match (column, statement) {
            (EVENTS, Statement::Insert(timestamp)) => {
                self.put_whole_list(random, place, timestamp, row);
            }
            (EVENTS, Statement::Update(written)) => self.change_list(random, place, written, row),
            (TAGS, _) => self.put_set(random, TAGS, statement, row),
            _ => self.put_amount(random, statement, row),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_contains_its_time() {
        // 2025-01-01T00:00:00.1234567Z.
        let uuid = time_uuid(ticks_of(1_735_689_600_123_456) + 7, NODE);
        let uuid = u128::from_be_bytes(uuid);
        assert_eq!(format!("{uuid:032x}"), "580fd687c7d311efb52ce1f07a3d9c45");
    }
}
