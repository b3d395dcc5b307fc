//! Text: schemas, file names, directories, ids and transaction logs.

use std::path::Path;

use compactor_sstable::descriptor::{Descriptor, TableDirectory};
use compactor_sstable::schema::{ColumnKind, Schema};
use compactor_sstable::sstable_id::SstableId;
use compactor_sstable::transaction_log::{Record, TransactionLog};

use crate::take;

/// schema.cql.
pub fn schema(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let Ok(schema) = Schema::parse(text) else {
        return;
    };
    let Ok(table) = schema.only_table() else {
        return;
    };
    let _ = (
        table.partition_key_type(),
        table.clustering_types(),
        table.drop_times_micros(),
    );
    for kind in [ColumnKind::Regular, ColumnKind::Static] {
        let _ = table.columns_of(kind);
    }
    let keyspace = table.keyspace.as_deref().unwrap_or_default();
    let _ = schema.table(keyspace, &table.name);
}

/// Input: a path.
///
/// # Panics
/// If a parsed name differs after being formatted and parsed again.
pub fn names(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Ok(id) = text.parse::<SstableId>() {
        assert_eq!(id.to_string().parse().ok(), Some(id), "{text}");
        let _ = id.next();
    }
    let path = Path::new(text);
    let _ = TableDirectory::parse(path);
    let Ok(file) = Descriptor::parse(path) else {
        return;
    };
    let _ = TableDirectory::parse(&file.descriptor.directory);
    let again = file
        .descriptor
        .directory
        .join(file.descriptor.file_name_of(&file.suffix));
    match Descriptor::parse(&again) {
        Ok(again) => assert_eq!(again, file),
        Err(error) => panic!("{error}"),
    }
}

/// Input: a transaction log, also used as the parts of a record, whose checksum is corrected.
///
/// # Panics
/// If a record differs after being written and parsed again.
pub fn transaction_log(mut data: &[u8]) {
    if let Ok(log) = TransactionLog::parse(data) {
        let lines: String = log.records.iter().map(Record::line).collect();
        assert_eq!(TransactionLog::parse(lines.as_bytes()).ok(), Some(log));
    }
    let Some([components]) = take(&mut data) else {
        return;
    };
    let record = Record::add(&String::from_utf8_lossy(data), components.into());
    let lines = record.line() + &Record::commit().line();
    match TransactionLog::parse(lines.as_bytes()) {
        Ok(log) => assert!(log.is_committed() && log.records.first() == Some(&record)),
        Err(error) => panic!("{error}"),
    }
}
