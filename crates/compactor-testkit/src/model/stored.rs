//! Times after being written to a file and read again: they are deltas of 32 bits to a header's minima, and
//! versions differ in the times they can represent.
//!
//! Source: `SerializationHeader.writeLocalDeletionTime`, `Cell.decodeLocalDeletionTime`,
//! `DeletionTime.build`, `DeletionTime.LegacySerializer`.

use compactor_sstable::Version;
use compactor_sstable::data::cell::{EXPIRED_LIVENESS_TTL, Liveness};
use compactor_sstable::data::deletion_time::{
    DeletionTime, INVALID_DELETION_TIME, MAX_DELETION_TIME, NO_DELETION_TIME,
};

use super::table::{Header, Row, Table, Unfiltered};

/// Returns the table that is read from a file with this header.
pub fn stored(table: &Table, header: &Header) -> Table {
    let mut table = table.clone();
    for partition in table.values_mut() {
        let deletion = &mut partition.deletion;
        if header.version == Version::Nb && !deletion.is_live() {
            deletion.local_deletion_time = deletion.local_deletion_time.min(2_147_483_646);
        }
        store_row(&mut partition.static_row, header);
        for unfiltered in &mut partition.unfiltereds {
            match unfiltered {
                Unfiltered::Row { row, .. } => store_row(row, header),
                Unfiltered::Marker { close, open, .. } => {
                    store_deletion(close, header);
                    store_deletion(open, header);
                }
            }
        }
    }
    table
}

fn store_row(row: &mut Row, header: &Header) {
    let Liveness {
        timestamp,
        ttl,
        local_expiration_time,
    } = row.liveness;
    if ttl != 0 {
        let seconds = stored_seconds(local_expiration_time, ttl, header);
        row.liveness = Liveness::new(timestamp, ttl, seconds);
    }
    store_deletion(&mut row.deletion, header);
    for data in row.columns.values_mut() {
        store_deletion(&mut data.deletion, header);
        for cell in &mut data.cells {
            if cell.local_deletion_time != NO_DELETION_TIME {
                cell.local_deletion_time =
                    stored_seconds(cell.local_deletion_time, cell.ttl, header);
            }
        }
    }
}

/// Returns a time after conversion to a delta of 32 bits and back: one 2^31 s after the minimum becomes
/// negative.
fn counted(seconds: i64, header: &Header) -> i64 {
    let minimum = header.min_local_deletion_time;
    i64::from(seconds.wrapping_sub(minimum) as i32) + minimum
}

fn store_deletion(deletion: &mut DeletionTime, header: &Header) {
    if deletion.is_live() {
        return;
    }
    let seconds = counted(deletion.local_deletion_time, header);
    let is_valid = (0..=MAX_DELETION_TIME).contains(&seconds);
    deletion.local_deletion_time = if is_valid {
        seconds
    } else {
        INVALID_DELETION_TIME
    };
}

/// Local deletion time of a cell or liveness.
fn stored_seconds(seconds: i64, ttl: i32, header: &Header) -> i64 {
    let value = counted(seconds, header);
    if value >= i64::from(ttl) {
        value
    } else if value >= 0 {
        if ttl == EXPIRED_LIVENESS_TTL {
            value
        } else {
            INVALID_DELETION_TIME
        }
    } else if header.version == Version::Nb {
        INVALID_DELETION_TIME
    } else {
        i64::from(value as u32)
    }
}
