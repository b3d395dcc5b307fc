//! Application of statements to a schema.
//!
//! Types are resolved at the end, so that the position in the text at which a UDT is created or changed does
//! not matter.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::error::Result;
use crate::schema::cursor::{Name, QualifiedName};
use crate::schema::lexer::error_at;
use crate::schema::options::{Properties, TableOptions};
use crate::schema::raw_type::{RawType, RawUserType, Resolver};
use crate::schema::statement::{CreateTable, RawColumn, Statement, TableChange, TypeChange};
use crate::schema::{Column, ColumnKind, DroppedColumn, Schema, Table};
use crate::types::CqlType;

pub(super) fn build(text: &str, statements: Vec<Statement>) -> Result<Schema> {
    let mut builder = Builder {
        text,
        ..Builder::default()
    };
    for statement in statements {
        builder.apply(statement)?;
    }
    for table in builder.indexes.into_iter().flatten() {
        if let Some(Some(table)) = builder.tables.get_mut(table) {
            table.indexes += 1;
        }
    }
    let types: Vec<RawUserType> = builder
        .types
        .into_iter()
        .flatten()
        .map(|draft| draft.raw)
        .collect();
    let mut resolver = Resolver::new(&types);
    let drafts: Vec<Draft> = builder.tables.into_iter().flatten().collect();
    let view_keys: Vec<Vec<String>> = drafts.iter().map(|draft| draft.view_key.clone()).collect();
    let tables: Result<Vec<Table>> = drafts
        .into_iter()
        .map(|draft| draft.finish(&mut resolver))
        .collect();
    let mut tables = tables?;
    for (place, key) in view_keys.iter().enumerate() {
        if let Some(base) = tables.iter().find(|base| tables[place].is_view_of(base)) {
            tables[place].strict_liveness = has_column_outside_key(base, key);
        }
    }
    Ok(Schema { tables })
}

/// Whether a column of a view's key is not in the key of its base table; `None` if the table has no such column.
fn has_column_outside_key(base: &Table, view_key: &[String]) -> Option<bool> {
    let kind_of = |name: &String| {
        let column = base.columns.iter().find(|column| column.name == *name)?;
        Some(column.kind)
    };
    let kinds = view_key.iter().map(kind_of);
    let kinds: Vec<ColumnKind> = kinds.collect::<Option<_>>()?;
    let is_key = |kind| matches!(kind, ColumnKind::PartitionKey | ColumnKind::Clustering);
    Some(!kinds.into_iter().all(is_key))
}

/// Keyspace and name.
type FullName = (Option<String>, String);

/// Builder of a schema. Everything is looked up by name in a map, and dropped items leave a vacant entry, so
/// that the time is linear in the length of the text.
#[derive(Default)]
struct Builder<'a> {
    text: &'a str,
    /// Set by `USE`.
    keyspace: Option<String>,
    types: Vec<Option<TypeDraft>>,
    types_by_name: HashMap<FullName, usize>,
    tables: Vec<Option<Draft>>,
    tables_by_name: HashMap<FullName, usize>,
    /// Index of the table in `tables`, of each secondary index.
    indexes: Vec<Option<usize>>,
    indexes_by_name: HashMap<String, usize>,
}

/// A UDT with unresolved types.
struct TypeDraft {
    raw: RawUserType,
    fields_by_name: HashMap<String, usize>,
}

/// A table with unresolved types.
#[derive(Default)]
struct Draft {
    keyspace: Option<String>,
    name: String,
    view_of: Option<String>,
    /// Primary key of a view.
    view_key: Vec<String>,
    columns: Vec<Option<RawColumn>>,
    columns_by_name: HashMap<String, usize>,
    /// Indexes in `columns`.
    partition_key: Vec<usize>,
    /// Indexes in `columns`, and whether each is descending.
    clustering: Vec<(usize, bool)>,
    /// Indexes of both.
    key: HashSet<usize>,
    dropped: Vec<RawDropped>,
    properties: Properties,
    indexes: usize,
}

struct RawDropped {
    name: String,
    raw_type: Option<RawType>,
    is_static: bool,
    at_micros: Option<i64>,
}

impl Builder<'_> {
    fn full_name(&self, name: &QualifiedName) -> FullName {
        let keyspace = name.keyspace.clone().or_else(|| self.keyspace.clone());
        (keyspace, name.name.text.clone())
    }

    fn table_place(&self, name: &QualifiedName) -> Result<usize> {
        self.tables_by_name
            .get(&self.full_name(name))
            .copied()
            .ok_or_else(|| error_at(self.text, name.name.offset, "a table that the text creates"))
    }

    fn add_table(&mut self, name: &QualifiedName, draft: Draft) -> Result<()> {
        let full_name = self.full_name(name);
        let place = self.tables_by_name.get(&full_name);
        match place.and_then(|place| self.tables.get(*place)?.as_ref()) {
            // `DESCRIBE TABLE` prints the views of a table too, which may also be described by themselves.
            Some(earlier) if earlier.is_same_view(&draft) => return Ok(()),
            Some(_) => {
                let expected = "a table that does not exist yet, or the same view again";
                return Err(error_at(self.text, name.name.offset, expected));
            }
            None => {}
        }
        self.tables_by_name.insert(full_name, self.tables.len());
        self.tables.push(Some(draft));
        Ok(())
    }

    fn apply(&mut self, statement: Statement) -> Result<()> {
        match statement {
            Statement::Use(keyspace) => self.keyspace = Some(keyspace),
            Statement::CreateType(mut udt) => {
                udt.keyspace = udt.keyspace.or_else(|| self.keyspace.clone());
                let name = (udt.keyspace.clone(), udt.name.clone());
                let place = self.types.len();
                self.types.push(Some(TypeDraft::new(udt)));
                if let Some(replaced) = self.types_by_name.insert(name, place) {
                    self.types[replaced] = None;
                }
            }
            Statement::AlterType { name, change } => {
                let place = self.types_by_name.get(&self.full_name(&name));
                if let Some(Some(draft)) = place.and_then(|place| self.types.get_mut(*place)) {
                    draft.change(change);
                }
            }
            Statement::DropType(name) => {
                if let Some(place) = self.types_by_name.remove(&self.full_name(&name)) {
                    self.types[place] = None;
                }
            }
            Statement::CreateTable(create) => {
                let (keyspace, _) = self.full_name(&create.name);
                let name = create.name.clone();
                let draft = Draft::table(self.text, keyspace, create)?;
                self.add_table(&name, draft)?;
            }
            Statement::CreateView {
                name,
                base,
                key,
                properties,
            } => {
                let (keyspace, _) = self.full_name(&name);
                let draft = Draft {
                    keyspace,
                    name: name.name.text.clone(),
                    view_of: Some(base.name.text),
                    view_key: key.into_iter().map(|name| name.text).collect(),
                    properties,
                    ..Draft::default()
                };
                self.add_table(&name, draft)?;
            }
            Statement::AlterTable { name, changes } => {
                let place = self.table_place(&name)?;
                if let Some(Some(table)) = self.tables.get_mut(place) {
                    for change in changes {
                        table.change(self.text, change)?;
                    }
                }
            }
            Statement::DropTable(name) => {
                if let Some(place) = self.tables_by_name.remove(&self.full_name(&name)) {
                    self.tables[place] = None;
                }
            }
            Statement::CreateIndex { name, table } => {
                let place = self.table_place(&table)?;
                if let Some(name) = name {
                    self.indexes_by_name.insert(name, self.indexes.len());
                }
                self.indexes.push(Some(place));
            }
            Statement::DropIndex(name) => {
                if let Some(place) = self.indexes_by_name.remove(&name.name.text) {
                    self.indexes[place] = None;
                }
            }
        }
        Ok(())
    }
}

impl TypeDraft {
    fn new(raw: RawUserType) -> TypeDraft {
        let mut draft = TypeDraft {
            fields_by_name: HashMap::new(),
            raw: RawUserType {
                fields: Vec::new(),
                ..raw
            },
        };
        draft.add(raw.fields);
        draft
    }

    fn add(&mut self, fields: Vec<(String, RawType)>) {
        for field in fields {
            let place = self.raw.fields.len();
            self.fields_by_name.insert(field.0.clone(), place);
            self.raw.fields.push(field);
        }
    }

    fn change(&mut self, change: TypeChange) {
        match change {
            TypeChange::Add(fields) => self.add(fields),
            TypeChange::Rename(renamed) => {
                for (from, to) in renamed {
                    if let Some(place) = self.fields_by_name.remove(&from) {
                        self.raw.fields[place].0.clone_from(&to);
                        self.fields_by_name.insert(to, place);
                    }
                }
            }
        }
    }
}

/// Expected name of a column that is added.
const NEW_COLUMN: &str = "a column that does not exist yet";

impl Draft {
    fn table(text: &str, keyspace: Option<String>, create: CreateTable) -> Result<Draft> {
        let mut draft = Draft {
            keyspace,
            name: create.name.name.text,
            properties: create.properties,
            ..Draft::default()
        };
        for column in create.columns {
            draft.add_column(text, column)?;
        }
        for name in &create.partition_key {
            let place = draft.column_place(text, name)?;
            draft.partition_key.push(place);
            draft.key.insert(place);
        }
        let order: HashMap<String, bool> = draft.properties.clustering_order.drain(..).collect();
        for name in &create.clustering {
            let place = draft.column_place(text, name)?;
            let descends = order.get(name.text.as_str()).is_some_and(|d| *d);
            draft.clustering.push((place, descends));
            draft.key.insert(place);
        }
        Ok(draft)
    }

    /// Whether both are the same view, described twice.
    fn is_same_view(&self, other: &Draft) -> bool {
        self.view_of.is_some()
            && self.view_of == other.view_of
            && self.view_key == other.view_key
            && self.properties.options == other.properties.options
            && (self.properties.id == other.properties.id
                || self.properties.id.is_none()
                || other.properties.id.is_none())
    }

    fn column_place(&self, text: &str, name: &Name) -> Result<usize> {
        self.columns_by_name
            .get(&name.text)
            .copied()
            .ok_or_else(|| error_at(text, name.offset, "a column of the table"))
    }

    fn add_column(&mut self, text: &str, column: RawColumn) -> Result<()> {
        let place = self.columns.len();
        let taken = self.columns_by_name.insert(column.name.text.clone(), place);
        if taken.is_some() {
            return Err(error_at(text, column.name.offset, NEW_COLUMN));
        }
        self.columns.push(Some(column));
        Ok(())
    }

    fn change(&mut self, text: &str, change: TableChange) -> Result<()> {
        match change {
            TableChange::Add(columns) => {
                for column in columns {
                    self.add_column(text, column)?;
                }
            }
            TableChange::Drop { names, at_micros } => {
                for name in names {
                    self.drop_column(text, name, at_micros)?;
                }
            }
            TableChange::Rename(renamed) => {
                for (from, to) in renamed {
                    let Some(place) = self.columns_by_name.remove(&from.text) else {
                        continue;
                    };
                    if let Some(Some(column)) = self.columns.get_mut(place) {
                        column.name.text.clone_from(&to.text);
                    }
                    if self.columns_by_name.insert(to.text, place).is_some() {
                        return Err(error_at(text, to.offset, NEW_COLUMN));
                    }
                }
            }
            TableChange::With(properties) => {
                merge_options(&mut self.properties.options, properties.options);
            }
        }
        Ok(())
    }

    /// A column that is dropped twice was declared again in between.
    fn drop_column(&mut self, text: &str, name: Name, at_micros: Option<i64>) -> Result<()> {
        let place = self.columns_by_name.remove(&name.text);
        if place.is_some_and(|place| self.key.contains(&place)) {
            let expected = "a column that is not of the primary key";
            return Err(error_at(text, name.offset, expected));
        }
        let column = place.and_then(|place| self.columns[place].take());
        self.dropped.push(RawDropped {
            name: name.text,
            is_static: column.as_ref().is_some_and(|column| column.is_static),
            raw_type: column.map(|column| column.raw_type),
            at_micros,
        });
        Ok(())
    }

    fn finish(mut self, resolver: &mut Resolver<'_>) -> Result<Table> {
        let keyspace = self.keyspace.as_deref();
        let mut columns = Vec::with_capacity(self.columns.len());
        let partition_key = self.partition_key.iter();
        let clustering = self.clustering.iter();
        let places = partition_key
            .map(|place| (*place, Some(ColumnKind::PartitionKey), false))
            .chain(clustering.map(|(place, down)| (*place, Some(ColumnKind::Clustering), *down)))
            .chain((0..self.columns.len()).map(|place| (place, None, false)));
        for (place, key_kind, descends) in places {
            // A column of the key is listed once, even if it occurs twice in the key.
            let Some(raw) = self.columns[place].take() else {
                continue;
            };
            let mut cql_type = resolver.resolve(&raw.raw_type, keyspace)?;
            if descends {
                cql_type = cql_type.map(|base| CqlType::Reversed(Arc::new(base)));
            }
            columns.push(Column {
                cql_type,
                is_multi_cell: raw.raw_type.is_multi_cell(),
                name: raw.name.text,
                kind: key_kind.unwrap_or(match raw.is_static {
                    true => ColumnKind::Static,
                    false => ColumnKind::Regular,
                }),
            });
        }
        let mut dropped_columns = Vec::with_capacity(self.dropped.len());
        for raw in self.dropped {
            let cql_type = match &raw.raw_type {
                Some(raw) => resolver.resolve(raw, keyspace)?,
                None => None,
            };
            dropped_columns.push(DroppedColumn {
                name: raw.name,
                cql_type,
                is_static: raw.is_static,
                dropped_at_micros: raw.at_micros,
            });
        }
        Ok(Table {
            keyspace: self.keyspace,
            name: self.name,
            id: self.properties.id,
            // Of views it is decided when all tables are known.
            strict_liveness: self.view_of.is_none().then_some(false),
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
        default_time_to_live,
        compaction,
        all,
    } = changed;
    options.gc_grace_seconds = gc_grace_seconds.or(options.gc_grace_seconds);
    options.bloom_filter_fp_chance = bloom_filter_fp_chance.or(options.bloom_filter_fp_chance);
    options.compression = compression.or(options.compression.take());
    options.min_index_interval = min_index_interval.or(options.min_index_interval);
    options.default_time_to_live = default_time_to_live.or(options.default_time_to_live);
    options.compaction = compaction.or(options.compaction.take());
    options.all.extend(all);
}
