//! Plays statements into a schema.
//!
//! Types are looked up at the end, so that it does not matter where in the text a UDT is created or
//! changed.

use std::sync::Arc;

use crate::error::Result;
use crate::schema::cursor::{Name, QualifiedName};
use crate::schema::lexer::error_at;
use crate::schema::options::{Properties, TableOptions};
use crate::schema::raw_type::{RawType, RawUserType, Resolver};
use crate::schema::statement::{CreateTable, RawColumn, Statement, TableChange, TypeChange};
use crate::schema::{Column, ColumnKind, DroppedColumn, Index, Schema, Table};
use crate::types::CqlType;

pub(super) fn build(text: &str, statements: Vec<Statement>) -> Result<Schema> {
    let mut builder = Builder {
        text,
        keyspace: None,
        types: Vec::new(),
        tables: Vec::new(),
    };
    for statement in statements {
        builder.apply(statement)?;
    }
    let mut resolver = Resolver::new(&builder.types);
    let tables: Result<Vec<Table>> = builder
        .tables
        .into_iter()
        .map(|draft| draft.finish(text, &mut resolver))
        .collect();
    Ok(Schema { tables: tables? })
}

struct Builder<'a> {
    text: &'a str,
    /// Set by `USE`.
    keyspace: Option<String>,
    types: Vec<RawUserType>,
    tables: Vec<Draft>,
}

/// A table whose types are as written.
struct Draft {
    keyspace: Option<String>,
    name: String,
    view_of: Option<String>,
    columns: Vec<RawColumn>,
    partition_key: Vec<Name>,
    clustering: Vec<Name>,
    dropped: Vec<(RawDropped, Option<i64>)>,
    properties: Properties,
    indexes: Vec<Index>,
}

struct RawDropped {
    name: String,
    raw_type: Option<RawType>,
    is_static: bool,
}

impl Builder<'_> {
    fn keyspace_of(&self, name: &QualifiedName) -> Option<String> {
        name.keyspace.clone().or_else(|| self.keyspace.clone())
    }

    fn table(&mut self, name: &QualifiedName) -> Result<&mut Draft> {
        let keyspace = self.keyspace_of(name);
        let text = self.text;
        self.tables
            .iter_mut()
            .find(|table| table.name == name.name.text && table.keyspace == keyspace)
            .ok_or_else(|| error_at(text, name.name.offset, "a table that the text creates", ""))
    }

    fn apply(&mut self, statement: Statement) -> Result<()> {
        match statement {
            Statement::Use(keyspace) => self.keyspace = Some(keyspace),
            Statement::CreateType(mut udt) => {
                udt.keyspace = udt.keyspace.or_else(|| self.keyspace.clone());
                self.types
                    .retain(|t| t.name != udt.name || t.keyspace != udt.keyspace);
                self.types.push(udt);
            }
            Statement::AlterType { name, change } => {
                let keyspace = self.keyspace_of(&name);
                self.types
                    .iter_mut()
                    .filter(|udt| udt.name == name.name.text && udt.keyspace == keyspace)
                    .for_each(|udt| change_type(udt, &change));
            }
            Statement::DropType(name) => {
                let keyspace = self.keyspace_of(&name);
                self.types
                    .retain(|t| t.name != name.name.text || t.keyspace != keyspace);
            }
            Statement::CreateTable(create) => {
                let keyspace = self.keyspace_of(&create.name);
                self.tables.push(Draft::table(keyspace, create));
            }
            Statement::CreateView {
                name,
                base,
                properties,
            } => {
                let keyspace = self.keyspace_of(&name);
                self.tables
                    .push(Draft::view(keyspace, name, base, properties));
            }
            Statement::AlterTable { name, changes } => {
                let text = self.text;
                let table = self.table(&name)?;
                for change in changes {
                    table.change(text, change)?;
                }
            }
            Statement::DropTable(name) => {
                let keyspace = self.keyspace_of(&name);
                self.tables
                    .retain(|t| t.name != name.name.text || t.keyspace != keyspace);
            }
            Statement::CreateIndex { name, table, using } => {
                self.table(&table)?.indexes.push(Index { name, using });
            }
            Statement::DropIndex(name) => {
                for table in &mut self.tables {
                    table
                        .indexes
                        .retain(|index| index.name.as_ref() != Some(&name.name.text));
                }
            }
        }
        Ok(())
    }
}

fn change_type(udt: &mut RawUserType, change: &TypeChange) {
    match change {
        TypeChange::Add(fields) => udt.fields.extend(fields.iter().cloned()),
        TypeChange::Rename(renamed) => {
            for (field, _) in &mut udt.fields {
                if let Some((_, to)) = renamed.iter().find(|(from, _)| from == field) {
                    field.clone_from(to);
                }
            }
        }
    }
}

impl Draft {
    fn table(keyspace: Option<String>, create: CreateTable) -> Draft {
        Draft {
            keyspace,
            name: create.name.name.text,
            view_of: None,
            columns: create.columns,
            partition_key: create.partition_key,
            clustering: create.clustering,
            dropped: Vec::new(),
            properties: create.properties,
            indexes: Vec::new(),
        }
    }

    fn view(
        keyspace: Option<String>,
        name: QualifiedName,
        base: QualifiedName,
        properties: Properties,
    ) -> Draft {
        Draft {
            keyspace,
            name: name.name.text,
            view_of: Some(base.name.text),
            columns: Vec::new(),
            partition_key: Vec::new(),
            clustering: Vec::new(),
            dropped: Vec::new(),
            properties,
            indexes: Vec::new(),
        }
    }

    fn change(&mut self, text: &str, change: TableChange) -> Result<()> {
        match change {
            TableChange::Add(columns) => {
                for column in columns {
                    if self
                        .columns
                        .iter()
                        .any(|other| other.name.text == column.name.text)
                    {
                        return Err(error_at(
                            text,
                            column.name.offset,
                            "a column that is not there yet",
                            "",
                        ));
                    }
                    self.columns.push(column);
                }
            }
            TableChange::Drop { names, at_micros } => {
                for name in names {
                    let dropped = self.drop_column(name);
                    self.dropped.push((dropped, at_micros));
                }
            }
            TableChange::Rename(renamed) => {
                let columns = self.columns.iter_mut().map(|column| &mut column.name);
                let keys = self.partition_key.iter_mut().chain(&mut self.clustering);
                let order = self
                    .properties
                    .clustering_order
                    .iter_mut()
                    .map(|(name, _)| name);
                let names = columns.chain(keys).map(|name| &mut name.text).chain(order);
                for name in names {
                    if let Some((_, to)) = renamed.iter().find(|(from, _)| from.text == *name) {
                        name.clone_from(&to.text);
                    }
                }
            }
            TableChange::With(properties) => {
                merge_options(&mut self.properties.options, properties.options);
            }
        }
        Ok(())
    }

    /// A column dropped twice has been dropped before it was declared again.
    fn drop_column(&mut self, name: Name) -> RawDropped {
        let index = self
            .columns
            .iter()
            .position(|column| column.name.text == name.text);
        match index.map(|index| self.columns.remove(index)) {
            Some(column) => RawDropped {
                name: name.text,
                raw_type: Some(column.raw_type),
                is_static: column.is_static,
            },
            None => RawDropped {
                name: name.text,
                raw_type: None,
                is_static: false,
            },
        }
    }

    fn finish(self, text: &str, resolver: &mut Resolver<'_>) -> Result<Table> {
        let keyspace = self.keyspace.as_deref();
        let mut columns = Vec::with_capacity(self.columns.len());
        for (names, kind) in [
            (&self.partition_key, ColumnKind::PartitionKey),
            (&self.clustering, ColumnKind::Clustering),
        ] {
            for name in names {
                let Some(raw) = self
                    .columns
                    .iter()
                    .find(|column| column.name.text == name.text)
                else {
                    return Err(error_at(text, name.offset, "a column of the table", ""));
                };
                let mut cql_type = resolver.resolve(&raw.raw_type, keyspace)?;
                let descends = self
                    .properties
                    .clustering_order
                    .iter()
                    .any(|(column, descending)| *descending && *column == name.text);
                if descends && kind == ColumnKind::Clustering {
                    cql_type = cql_type.map(|base| CqlType::Reversed(Arc::new(base)));
                }
                columns.push(Column {
                    name: name.text.clone(),
                    cql_type,
                    is_multi_cell: raw.raw_type.is_multi_cell(),
                    kind,
                });
            }
        }
        for raw in &self.columns {
            if columns.iter().any(|column| column.name == raw.name.text) {
                continue;
            }
            let kind = if raw.is_static {
                ColumnKind::Static
            } else {
                ColumnKind::Regular
            };
            let cql_type = resolver.resolve(&raw.raw_type, keyspace)?;
            columns.push(Column {
                name: raw.name.text.clone(),
                cql_type,
                is_multi_cell: raw.raw_type.is_multi_cell(),
                kind,
            });
        }
        let mut dropped_columns = Vec::with_capacity(self.dropped.len());
        for (raw, dropped_at_micros) in &self.dropped {
            let cql_type = match &raw.raw_type {
                Some(raw) => resolver.resolve(raw, keyspace)?,
                None => None,
            };
            dropped_columns.push(DroppedColumn {
                name: raw.name.clone(),
                cql_type,
                is_static: raw.is_static,
                dropped_at_micros: *dropped_at_micros,
            });
        }
        Ok(Table {
            keyspace: self.keyspace,
            name: self.name,
            id: self.properties.id,
            view_of: self.view_of,
            columns,
            dropped_columns,
            options: self.properties.options,
            compact_storage: self.properties.compact_storage,
            indexes: self.indexes,
        })
    }
}

fn merge_options(options: &mut TableOptions, changed: TableOptions) {
    let TableOptions {
        gc_grace_seconds,
        bloom_filter_fp_chance,
        compression,
        min_index_interval,
        max_index_interval,
        default_time_to_live,
        crc_check_chance,
        compaction,
        all,
    } = changed;
    options.gc_grace_seconds = gc_grace_seconds.or(options.gc_grace_seconds);
    options.bloom_filter_fp_chance = bloom_filter_fp_chance.or(options.bloom_filter_fp_chance);
    options.compression = compression.or(options.compression.take());
    options.min_index_interval = min_index_interval.or(options.min_index_interval);
    options.max_index_interval = max_index_interval.or(options.max_index_interval);
    options.default_time_to_live = default_time_to_live.or(options.default_time_to_live);
    options.crc_check_chance = crc_check_chance.or(options.crc_check_chance);
    options.compaction = compaction.or(options.compaction.take());
    options.all.extend(all);
}
