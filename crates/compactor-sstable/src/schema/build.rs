//! The schema that statements create and change.
//!
//! Types are resolved at the end, so that the position in the text at which a UDT is created or changed does
//! not matter. Everything is looked up by name in a map and sorted at the end, by the offset at which it was created,
//! so that the time is linear in the length of the text.

use std::collections::HashMap;
use std::sync::Arc;

use crate::error::Result;
use crate::schema::cursor::{Cursor, Name, QualifiedName};
use crate::schema::raw_type::{RawType, RawUserType, Resolver};
use crate::schema::{Column, ColumnKind, DroppedColumn, Schema, Table, TableOptions};
use crate::types::CqlType;

/// Keyspace and name.
type FullName = (Option<String>, String);

/// Builder of a schema.
#[derive(Default)]
pub(super) struct Builder {
    /// Set by `USE`.
    pub(super) keyspace: Option<String>,
    types: HashMap<FullName, TypeDraft>,
    tables: HashMap<FullName, Draft>,
    /// Table of each secondary index that has a name, and the offset of its creation.
    indexes: HashMap<String, (FullName, usize)>,
}

/// A UDT with unresolved types.
pub(super) struct TypeDraft {
    offset: usize,
    raw: RawUserType,
    fields_by_name: HashMap<String, usize>,
}

/// A table with unresolved types.
pub(super) struct Draft {
    offset: usize,
    /// Without its columns, and without the types of dropped ones.
    pub(super) table: Table,
    columns: HashMap<String, RawColumn>,
    /// Index of each dropped column in those of the table.
    dropped: HashMap<String, usize>,
    /// Types of its dropped columns; `None` if the text does not declare one.
    dropped_types: Vec<Option<RawType>>,
}

/// A column with an unresolved type.
pub(super) struct RawColumn {
    pub(super) raw_type: RawType,
    pub(super) kind: ColumnKind,
    /// Index in its part of the key; for other columns the offset of the declaration.
    pub(super) place: usize,
    pub(super) descends: bool,
}

impl Builder {
    pub(super) fn full_name(&self, name: &QualifiedName) -> FullName {
        let keyspace = name.keyspace.as_ref().or(self.keyspace.as_ref());
        (keyspace.cloned(), name.name.text.clone())
    }

    pub(super) fn create_type(
        &mut self,
        cursor: &Cursor<'_>,
        name: &QualifiedName,
        fields: Vec<(Name, RawType)>,
    ) -> Result<()> {
        let full_name = self.full_name(name);
        let (keyspace, type_name) = full_name.clone();
        let mut draft = TypeDraft {
            offset: name.name.offset,
            raw: RawUserType {
                keyspace,
                name: type_name,
                fields: Vec::new(),
            },
            fields_by_name: HashMap::new(),
        };
        for field in fields {
            draft.add(cursor, field)?;
        }
        self.types.insert(full_name, draft);
        Ok(())
    }

    pub(super) fn type_mut(&mut self, name: &QualifiedName) -> Option<&mut TypeDraft> {
        let name = self.full_name(name);
        self.types.get_mut(&name)
    }

    pub(super) fn drop_type(&mut self, name: &QualifiedName) {
        self.types.remove(&self.full_name(name));
    }

    pub(super) fn add_table(
        &mut self,
        cursor: &Cursor<'_>,
        name: &QualifiedName,
        draft: Draft,
    ) -> Result<()> {
        let full_name = self.full_name(name);
        match self.tables.get(&full_name) {
            // `DESCRIBE TABLE` prints the views of a table too, which may also be described by themselves.
            Some(earlier) if earlier.is_same_view(&draft) => {}
            Some(_) => {
                let expected = "a table that does not exist yet, or the same view again";
                return Err(cursor.error_at(name.name.offset, expected));
            }
            None => {
                self.tables.insert(full_name, draft);
            }
        }
        Ok(())
    }

    pub(super) fn table_mut(
        &mut self,
        cursor: &Cursor<'_>,
        name: &QualifiedName,
    ) -> Result<&mut Draft> {
        let full_name = self.full_name(name);
        let found = self.tables.get_mut(&full_name);
        found.ok_or_else(|| cursor.error_at(name.name.offset, "a table that the text creates"))
    }

    pub(super) fn drop_table(&mut self, name: &QualifiedName) {
        self.tables.remove(&self.full_name(name));
    }

    /// Counts an index. That of a table which the text does not create is skipped: Cassandra describes a table with
    /// compact storage in a comment, and its indexes after that (`SchemaCQLHelper.reCreateStatementsForSchemaCql`).
    pub(super) fn add_index(&mut self, name: Option<String>, table: &QualifiedName) {
        let full_name = self.full_name(table);
        let Some(draft) = self.tables.get_mut(&full_name) else {
            return;
        };
        draft.table.indexes += 1;
        let offset = draft.offset;
        if let Some(name) = name {
            self.indexes.insert(name, (full_name, offset));
        }
    }

    pub(super) fn drop_index(&mut self, name: &str) {
        if let Some((table, offset)) = self.indexes.remove(name)
            && let Some(draft) = self.tables.get_mut(&table)
            // Not another table that was created under the name later.
            && draft.offset == offset
        {
            draft.table.indexes -= 1;
        }
    }

    /// Returns the schema, with resolved types.
    pub(super) fn finish(self) -> Result<Schema> {
        let mut types: Vec<TypeDraft> = self.types.into_values().collect();
        types.sort_unstable_by_key(|draft| draft.offset);
        let types: Vec<RawUserType> = types.into_iter().map(|draft| draft.raw).collect();
        let mut resolver = Resolver::new(&types);
        let mut drafts: Vec<Draft> = self.tables.into_values().collect();
        drafts.sort_unstable_by_key(|draft| draft.offset);
        for draft in &mut drafts {
            draft.resolve(&mut resolver)?;
        }
        let strict = drafts.iter().map(|draft| draft.strict_liveness(&drafts));
        let strict: Vec<Option<bool>> = strict.collect();
        let tables = drafts.into_iter().zip(strict);
        let tables = tables.map(|(draft, strict_liveness)| Table {
            strict_liveness,
            ..draft.table
        });
        Ok(Schema {
            tables: tables.collect(),
        })
    }
}

impl TypeDraft {
    pub(super) fn has(&self, field: &Name) -> bool {
        self.fields_by_name.contains_key(&field.text)
    }

    pub(super) fn add(&mut self, cursor: &Cursor<'_>, (name, raw): (Name, RawType)) -> Result<()> {
        if self.has(&name) {
            return Err(cursor.error_at(name.offset, "a field that does not exist yet"));
        }
        let place = self.raw.fields.len();
        self.fields_by_name.insert(name.text.clone(), place);
        self.raw.fields.push((name.text, raw));
        Ok(())
    }

    pub(super) fn rename(&mut self, from: &str, to: String) {
        if let Some(place) = self.fields_by_name.remove(from) {
            self.raw.fields[place].0.clone_from(&to);
            self.fields_by_name.insert(to, place);
        }
    }
}

/// Expected name of a column that is added.
const NEW_COLUMN: &str = "a column that does not exist yet";

impl Draft {
    pub(super) fn new((keyspace, name): FullName, declared: &Name) -> Draft {
        Draft {
            offset: declared.offset,
            table: Table {
                keyspace,
                name,
                id: None,
                view_of: None,
                view_key: Default::default(),
                strict_liveness: None,
                columns: Vec::new(),
                dropped_columns: Vec::new(),
                options: TableOptions::default(),
                compact_storage: false,
                indexes: 0,
            },
            columns: HashMap::new(),
            dropped: HashMap::new(),
            dropped_types: Vec::new(),
        }
    }

    /// Whether both are the same view, described twice.
    fn is_same_view(&self, other: &Draft) -> bool {
        let (a, b) = (&self.table, &other.table);
        a.view_of.is_some()
            && a.view_of == b.view_of
            && a.view_key == b.view_key
            && a.options == b.options
            && (a.id == b.id || a.id.is_none() || b.id.is_none())
    }

    pub(super) fn has(&self, column: &Name) -> bool {
        self.columns.contains_key(&column.text)
    }

    pub(super) fn add_column(
        &mut self,
        cursor: &Cursor<'_>,
        name: Name,
        column: RawColumn,
    ) -> Result<()> {
        if self.has(&name) {
            return Err(cursor.error_at(name.offset, NEW_COLUMN));
        }
        self.columns.insert(name.text, column);
        Ok(())
    }

    /// Makes a column one of the key.
    pub(super) fn set_key(
        &mut self,
        cursor: &Cursor<'_>,
        name: &Name,
        kind: ColumnKind,
        place: usize,
        descends: bool,
    ) -> Result<()> {
        let Some(column) = self.columns.get_mut(&name.text) else {
            return Err(cursor.error_at(name.offset, "a column of the table"));
        };
        if column.kind != ColumnKind::Regular {
            let expected = "a column that is not static, and not in the key yet";
            return Err(cursor.error_at(name.offset, expected));
        }
        (column.kind, column.place, column.descends) = (kind, place, descends);
        Ok(())
    }

    pub(super) fn rename_column(
        &mut self,
        cursor: &Cursor<'_>,
        from: &Name,
        to: Name,
    ) -> Result<()> {
        match self.columns.remove(&from.text) {
            Some(column) => self.add_column(cursor, to, column),
            None => Ok(()),
        }
    }

    /// Records a drop, in place of an earlier one of the same column, even if that has a later time
    /// (`TableMetadata.Builder.recordColumnDrop`). A column that the text does not declare any more is not dropped again.
    pub(super) fn drop_column(
        &mut self,
        cursor: &Cursor<'_>,
        name: Name,
        dropped_at_micros: Option<i64>,
    ) -> Result<()> {
        let column = self.columns.remove(&name.text);
        if column.as_ref().is_some_and(RawColumn::is_key) {
            return Err(cursor.error_at(name.offset, "a column that is not of the primary key"));
        }
        let kind = column.as_ref().map(|column| column.kind);
        let dropped = DroppedColumn {
            name: name.text,
            cql_type: None,
            is_static: kind == Some(ColumnKind::Static),
            dropped_at_micros,
        };
        let raw_type = column.map(|column| column.raw_type);
        match self.dropped.get(&dropped.name) {
            None => {
                let place = self.table.dropped_columns.len();
                self.dropped.insert(dropped.name.clone(), place);
                self.table.dropped_columns.push(dropped);
                self.dropped_types.push(raw_type);
            }
            Some(&place) if raw_type.is_some() => {
                self.table.dropped_columns[place] = dropped;
                self.dropped_types[place] = raw_type;
            }
            Some(_) => {}
        }
        Ok(())
    }

    /// Adds the columns to the table, in order, and the types of dropped ones.
    fn resolve(&mut self, resolver: &mut Resolver<'_>) -> Result<()> {
        let table = &mut self.table;
        let keyspace = table.keyspace.as_deref();
        let mut columns: Vec<(String, RawColumn)> = self.columns.drain().collect();
        // Static and regular columns are not separated.
        columns.sort_unstable_by_key(|(_, raw)| (raw.kind.min(ColumnKind::Static), raw.place));
        for (name, raw) in columns {
            let mut cql_type = resolver.resolve(&raw.raw_type, keyspace)?;
            if raw.descends {
                cql_type = cql_type.map(|base| CqlType::Reversed(Arc::new(base)));
            }
            table.columns.push(Column {
                name,
                cql_type,
                is_multi_cell: raw.raw_type.is_multi_cell(),
                kind: raw.kind,
            });
        }
        for (dropped, raw) in table.dropped_columns.iter_mut().zip(&self.dropped_types) {
            if let Some(raw) = raw {
                dropped.cql_type = resolver.resolve(raw, keyspace)?;
            }
        }
        Ok(())
    }

    /// Whether a column of a view's key is not in the key of its base table; `None` if the table does not exist or has
    /// no such column.
    fn strict_liveness(&self, drafts: &[Draft]) -> Option<bool> {
        if self.table.view_of.is_none() {
            return Some(false);
        }
        let mut bases = drafts.iter().map(|draft| &draft.table);
        let base = bases.find(|base| self.table.is_view_of(base))?;
        let kind_of = |name: &String| {
            let column = base.columns.iter().find(|column| column.name == *name)?;
            Some(column.kind)
        };
        let kinds = self.table.view_key.iter().flatten().map(kind_of);
        let kinds: Vec<ColumnKind> = kinds.collect::<Option<_>>()?;
        Some(kinds.into_iter().any(|kind| kind >= ColumnKind::Static))
    }
}

impl RawColumn {
    fn is_key(&self) -> bool {
        self.kind < ColumnKind::Static
    }
}
