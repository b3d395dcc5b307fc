//! CQL statements that concern tables, applied to a schema as they are read; others are skipped.
//!
//! Source: `Parser.g`.

use crate::error::Result;
use crate::schema::build::{Builder, Draft, RawColumn};
use crate::schema::cursor::{Cursor, Name};
use crate::schema::lexer::TokenKind;
use crate::schema::options::parse_properties;
use crate::schema::raw_type::RawType;
use crate::schema::{ColumnKind, Schema, Table};

/// Parses all statements of `text`.
pub(super) fn parse(text: &str) -> Result<Schema> {
    let mut cursor = Cursor::new(text)?;
    let mut schema = Builder::default();
    while !cursor.is_at_end() {
        if cursor.take_symbol(';') {
            continue;
        }
        statement(&mut cursor, &mut schema)?;
        if !cursor.is_at_end() {
            cursor.expect_symbol(';')?;
        }
    }
    schema.finish()
}

fn statement(cursor: &mut Cursor<'_>, schema: &mut Builder) -> Result<()> {
    if cursor.take_keyword("USE") {
        schema.keyspace = Some(cursor.name("a keyspace")?.text);
    } else if cursor.take_keywords(&["CREATE", "TYPE"]) {
        create_type(cursor, schema)?;
    } else if cursor.take_keywords(&["ALTER", "TYPE"]) {
        alter_type(cursor, schema)?;
    } else if cursor.take_keywords(&["DROP", "TYPE"]) {
        cursor.take_keywords(&["IF", "EXISTS"]);
        schema.drop_type(&cursor.qualified_name("a type")?);
    } else if takes_table(cursor, "CREATE") {
        create_table(cursor, schema)?;
    } else if cursor.take_keywords(&["CREATE", "MATERIALIZED", "VIEW"]) {
        create_view(cursor, schema)?;
    } else if takes_table(cursor, "ALTER")
        || cursor.take_keywords(&["ALTER", "MATERIALIZED", "VIEW"])
    {
        alter_table(cursor, schema)?;
    } else if takes_table(cursor, "DROP") || cursor.take_keywords(&["DROP", "MATERIALIZED", "VIEW"])
    {
        cursor.take_keywords(&["IF", "EXISTS"]);
        schema.drop_table(&cursor.qualified_name("a table")?);
    } else if cursor.take_keywords(&["CREATE", "INDEX"])
        || cursor.take_keywords(&["CREATE", "CUSTOM", "INDEX"])
    {
        create_index(cursor, schema)?;
    } else if cursor.take_keywords(&["DROP", "INDEX"]) {
        cursor.take_keywords(&["IF", "EXISTS"]);
        schema.drop_index(&cursor.qualified_name("an index")?.name.text);
    } else if matches!(cursor.peek(), TokenKind::Word(_)) {
        cursor.skip_statement();
    } else {
        return Err(cursor.error("a statement"));
    }
    Ok(())
}

fn takes_table(cursor: &mut Cursor<'_>, verb: &str) -> bool {
    cursor.take_keywords(&[verb, "TABLE"]) || cursor.take_keywords(&[verb, "COLUMNFAMILY"])
}

fn create_type(cursor: &mut Cursor<'_>, schema: &mut Builder) -> Result<()> {
    cursor.take_keywords(&["IF", "NOT", "EXISTS"]);
    let name = cursor.qualified_name("the name of a type")?;
    let fields = cursor.list(field)?;
    schema.create_type(cursor, &name, fields)
}

fn field(cursor: &mut Cursor<'_>) -> Result<(Name, RawType)> {
    Ok((cursor.name("a field")?, RawType::parse(cursor)?))
}

fn alter_type(cursor: &mut Cursor<'_>, schema: &mut Builder) -> Result<()> {
    cursor.take_keywords(&["IF", "EXISTS"]);
    let name = cursor.qualified_name("the name of a type")?;
    let mut altered = schema.type_mut(&name);
    if cursor.take_keyword("ADD") {
        let if_not_exists = cursor.take_keywords(&["IF", "NOT", "EXISTS"]);
        let field = field(cursor)?;
        if let Some(altered) = altered
            && !(if_not_exists && altered.has(&field.0))
        {
            altered.add(cursor, field)?;
        }
    } else if cursor.take_keyword("RENAME") {
        cursor.take_keywords(&["IF", "EXISTS"]);
        for (from, to) in renamings(cursor)? {
            if let Some(altered) = &mut altered {
                altered.rename(&from.text, to.text);
            }
        }
    } else {
        cursor.skip_statement();
    }
    Ok(())
}

/// Reads `a TO b AND c TO d`.
fn renamings(cursor: &mut Cursor<'_>) -> Result<Vec<(Name, Name)>> {
    let mut renamed = Vec::new();
    loop {
        let from = cursor.name("a name")?;
        cursor.expect_keyword("TO")?;
        renamed.push((from, cursor.name("a name")?));
        if !cursor.take_keyword("AND") {
            return Ok(renamed);
        }
    }
}

/// Source: `CreateTableStatement`.
fn create_table(cursor: &mut Cursor<'_>, schema: &mut Builder) -> Result<()> {
    cursor.take_keywords(&["IF", "NOT", "EXISTS"]);
    let name = cursor.qualified_name("the name of a table")?;
    let mut draft = Draft::new(schema.full_name(&name), &name.name);
    let mut keys = Vec::new();
    cursor.list(|cursor| {
        if cursor.take_keywords(&["PRIMARY", "KEY"]) {
            keys.push(key_columns(cursor)?);
            return Ok(());
        }
        let (name, column, is_primary_key) = column(cursor)?;
        if is_primary_key {
            keys.push((vec![name.clone()], Vec::new()));
        }
        draft.add_column(cursor, name, column)
    })?;
    let (partition_key, clustering) = match &keys[..] {
        [(partition_key, clustering)] if !partition_key.is_empty() => (partition_key, clustering),
        _ => return Err(cursor.error("one PRIMARY KEY before the end of the columns")),
    };
    let order = with_properties(cursor, &mut draft.table)?;
    // The last columns may be missing.
    let mut expected = clustering.iter();
    for (named, _) in &order {
        if expected
            .next()
            .is_none_or(|column| column.text != named.text)
        {
            let expected = "the clustering columns in the order of the key";
            return Err(cursor.error_at(named.offset, expected));
        }
    }
    for (place, name) in partition_key.iter().enumerate() {
        draft.set_key(cursor, name, ColumnKind::PartitionKey, place, false)?;
    }
    for (place, name) in clustering.iter().enumerate() {
        let descends = order.get(place).is_some_and(|(_, descends)| *descends);
        draft.set_key(cursor, name, ColumnKind::Clustering, place, descends)?;
    }
    schema.add_table(cursor, &name, draft)
}

/// Reads `[WITH property AND property ...]` into a table. Returns the clustering columns whose order is given, and
/// whether each is descending.
fn with_properties(cursor: &mut Cursor<'_>, table: &mut Table) -> Result<Vec<(Name, bool)>> {
    if cursor.take_keyword("WITH") {
        parse_properties(cursor, table)
    } else {
        Ok(Vec::new())
    }
}

/// Reads the columns after `PRIMARY KEY`: `( a, b )` or `( (a, b), c )`.
fn key_columns(cursor: &mut Cursor<'_>) -> Result<(Vec<Name>, Vec<Name>)> {
    let key_column = |cursor: &mut Cursor<'_>| cursor.name("a key column");
    let parts = cursor.list(|cursor| {
        if *cursor.peek() == TokenKind::Symbol('(') {
            cursor.list(key_column)
        } else {
            key_column(cursor).map(|name| vec![name])
        }
    })?;
    let mut parts = parts.into_iter();
    let partition_key = parts.next().unwrap_or_default();
    Ok((partition_key, parts.flatten().collect()))
}

/// Reads `name type [STATIC] [mask] [constraints] [PRIMARY KEY]`; also returns whether it is the primary key.
fn column(cursor: &mut Cursor<'_>) -> Result<(Name, RawColumn, bool)> {
    let name = cursor.name("a column")?;
    let mut column = RawColumn {
        raw_type: RawType::parse(cursor)?,
        kind: ColumnKind::Regular,
        place: name.offset,
        descends: false,
    };
    let mut is_primary_key = false;
    loop {
        if cursor.take_keyword("STATIC") {
            column.kind = ColumnKind::Static;
        } else if cursor.take_keywords(&["PRIMARY", "KEY"]) {
            is_primary_key = true;
        } else if ["MASKED", "CHECK", "NOT"]
            .iter()
            .any(|keyword| cursor.is_keyword(keyword))
        {
            skip_mask_and_constraints(cursor)?;
        } else {
            return Ok((name, column, is_primary_key));
        }
    }
}

/// Skips `MASKED WITH function(arguments)` and `CHECK condition AND condition`, which do not affect the bytes on disk.
/// `PRIMARY KEY` comes after them.
fn skip_mask_and_constraints(cursor: &mut Cursor<'_>) -> Result<()> {
    while !cursor.is_keyword("PRIMARY")
        && !matches!(
            cursor.peek(),
            TokenKind::End | TokenKind::Symbol(',' | ')' | ';')
        )
    {
        if *cursor.peek() == TokenKind::Symbol('(') {
            cursor.list(|cursor| {
                cursor.skip_item();
                Ok(())
            })?;
        } else {
            cursor.advance();
        }
    }
    Ok(())
}

/// Reads `name AS SELECT ... FROM base WHERE ... PRIMARY KEY (...) WITH ...`.
fn create_view(cursor: &mut Cursor<'_>, schema: &mut Builder) -> Result<()> {
    cursor.take_keywords(&["IF", "NOT", "EXISTS"]);
    let name = cursor.qualified_name("the name of a view")?;
    let mut draft = Draft::new(schema.full_name(&name), &name.name);
    skip_past(cursor, &["FROM"])?;
    draft.table.view_of = Some(cursor.qualified_name("the base table")?.name.text);
    skip_past(cursor, &["PRIMARY", "KEY"])?;
    let (partition_key, clustering) = key_columns(cursor)?;
    draft.table.view_key =
        [partition_key, clustering].map(|names| names.into_iter().map(|name| name.text).collect());
    with_properties(cursor, &mut draft.table)?;
    schema.add_table(cursor, &name, draft)
}

/// Skips to keywords in the statement, and them.
fn skip_past(cursor: &mut Cursor<'_>, keywords: &[&str]) -> Result<()> {
    while !cursor.take_keywords(keywords) {
        if matches!(cursor.peek(), TokenKind::End | TokenKind::Symbol(';')) {
            return Err(cursor.error(keywords.join(" ")));
        }
        cursor.advance();
    }
    Ok(())
}

fn alter_table(cursor: &mut Cursor<'_>, schema: &mut Builder) -> Result<()> {
    cursor.take_keywords(&["IF", "EXISTS"]);
    let name = cursor.qualified_name("the name of a table")?;
    let draft = schema.table_mut(cursor, &name)?;
    if cursor.take_keyword("ADD") {
        let if_not_exists = cursor.take_keywords(&["IF", "NOT", "EXISTS"]);
        for (name, column, _) in cursor.items(column)? {
            if !(if_not_exists && draft.has(&name)) {
                draft.add_column(cursor, name, column)?;
            }
        }
    } else if cursor.take_keywords(&["DROP", "COMPACT", "STORAGE"]) {
        // It changes no SSTable. Without `STORAGE` it drops a column of this name.
    } else if cursor.take_keyword("DROP") {
        let (names, at_micros) = dropped_columns(cursor)?;
        for name in names {
            draft.drop_column(cursor, name, at_micros)?;
        }
    } else if cursor.take_keyword("RENAME") {
        cursor.take_keywords(&["IF", "EXISTS"]);
        for (from, to) in renamings(cursor)? {
            draft.rename_column(cursor, &from, to)?;
        }
    } else if cursor.take_keyword("WITH") {
        // Neither can be altered (`TableAttributes.asAlteredTableParams`).
        let (id, compact_storage) = (draft.table.id, draft.table.compact_storage);
        parse_properties(cursor, &mut draft.table)?;
        draft.table.id = id;
        draft.table.compact_storage = compact_storage;
    } else {
        cursor.skip_statement();
    }
    Ok(())
}

/// Reads `[IF EXISTS] a, b` or `(a, b)`, then `[USING TIMESTAMP micros]`.
fn dropped_columns(cursor: &mut Cursor<'_>) -> Result<(Vec<Name>, Option<i64>)> {
    cursor.take_keywords(&["IF", "EXISTS"]);
    let names = cursor.items(|cursor| cursor.name("a column"))?;
    if !cursor.take_keywords(&["USING", "TIMESTAMP"]) {
        return Ok((names, None));
    }
    let sign = if cursor.take_symbol('-') { "-" } else { "" };
    let parsed = match cursor.peek() {
        TokenKind::Number(number) => format!("{sign}{number}").parse().ok(),
        _ => None,
    };
    let Some(micros) = parsed else {
        return Err(cursor.error("a timestamp of 64 bits"));
    };
    cursor.advance();
    Ok((names, Some(micros)))
}

/// Reads `[name] ON table`, and skips `(target) [USING 'class'] [WITH OPTIONS = {...}]`.
fn create_index(cursor: &mut Cursor<'_>, schema: &mut Builder) -> Result<()> {
    cursor.take_keywords(&["IF", "NOT", "EXISTS"]);
    let name = if cursor.is_keyword("ON") {
        None
    } else {
        Some(cursor.qualified_name("the name of an index")?.name.text)
    };
    cursor.expect_keyword("ON")?;
    let table = cursor.qualified_name("the name of a table")?;
    schema.add_index(name, &table);
    cursor.skip_statement();
    Ok(())
}
