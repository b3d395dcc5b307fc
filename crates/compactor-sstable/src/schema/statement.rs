//! CQL statements that concern tables; others are skipped.
//!
//! Source: `Parser.g`.

use crate::error::Result;
use crate::schema::cursor::{Cursor, Name, QualifiedName};
use crate::schema::lexer::TokenKind;
use crate::schema::options::{Properties, parse_properties};
use crate::schema::raw_type::{RawType, RawUserType};

/// A statement with unresolved names.
#[derive(Debug)]
pub(super) enum Statement {
    Use(String),
    CreateType(RawUserType),
    AlterType {
        name: QualifiedName,
        change: TypeChange,
    },
    DropType(QualifiedName),
    CreateTable(CreateTable),
    CreateView {
        name: QualifiedName,
        base: QualifiedName,
        /// Columns of its primary key.
        key: Vec<Name>,
        properties: Properties,
    },
    AlterTable {
        name: QualifiedName,
        changes: Vec<TableChange>,
    },
    DropTable(QualifiedName),
    CreateIndex {
        name: Option<String>,
        table: QualifiedName,
    },
    DropIndex(QualifiedName),
}

#[derive(Debug)]
pub(super) enum TypeChange {
    Add(Vec<(String, RawType)>),
    Rename(Vec<(String, String)>),
}

#[derive(Debug)]
pub(super) struct CreateTable {
    pub(super) name: QualifiedName,
    pub(super) columns: Vec<RawColumn>,
    pub(super) partition_key: Vec<Name>,
    pub(super) clustering: Vec<Name>,
    pub(super) properties: Properties,
}

#[derive(Debug)]
pub(super) struct RawColumn {
    pub(super) name: Name,
    pub(super) raw_type: RawType,
    pub(super) is_static: bool,
}

#[derive(Debug)]
pub(super) enum TableChange {
    Add(Vec<RawColumn>),
    Drop {
        names: Vec<Name>,
        at_micros: Option<i64>,
    },
    Rename(Vec<(Name, Name)>),
    With(Box<Properties>),
}

/// Parses all statements of `text`.
pub(super) fn parse(text: &str) -> Result<Vec<Statement>> {
    let mut cursor = Cursor::new(text)?;
    let mut statements = Vec::new();
    while !cursor.is_at_end() {
        if cursor.take_symbol(';') {
            continue;
        }
        if let Some(statement) = parse_statement(&mut cursor)? {
            statements.push(statement);
        }
        if !cursor.is_at_end() {
            cursor.expect_symbol(';')?;
        }
    }
    Ok(statements)
}

fn parse_statement(cursor: &mut Cursor<'_>) -> Result<Option<Statement>> {
    let statement = if cursor.take_keyword("USE") {
        Statement::Use(cursor.name("a keyspace")?.text)
    } else if cursor.take_keywords(&["CREATE", "TYPE"]) {
        create_type(cursor)?
    } else if cursor.take_keywords(&["ALTER", "TYPE"]) {
        match alter_type(cursor)? {
            Some(statement) => statement,
            None => return Ok(None),
        }
    } else if cursor.take_keywords(&["DROP", "TYPE"]) {
        cursor.take_keywords(&["IF", "EXISTS"]);
        Statement::DropType(cursor.qualified_name("a type")?)
    } else if takes_table(cursor, "CREATE") {
        create_table(cursor)?
    } else if cursor.take_keywords(&["CREATE", "MATERIALIZED", "VIEW"]) {
        create_view(cursor)?
    } else if takes_table(cursor, "ALTER") {
        alter_table(cursor)?
    } else if takes_table(cursor, "DROP") || cursor.take_keywords(&["DROP", "MATERIALIZED", "VIEW"])
    {
        cursor.take_keywords(&["IF", "EXISTS"]);
        Statement::DropTable(cursor.qualified_name("a table")?)
    } else if cursor.take_keywords(&["CREATE", "INDEX"])
        || cursor.take_keywords(&["CREATE", "CUSTOM", "INDEX"])
    {
        create_index(cursor)?
    } else if cursor.take_keywords(&["DROP", "INDEX"]) {
        cursor.take_keywords(&["IF", "EXISTS"]);
        Statement::DropIndex(cursor.qualified_name("an index")?)
    } else if matches!(cursor.peek(), TokenKind::Word(_)) {
        cursor.skip_statement();
        return Ok(None);
    } else {
        return Err(cursor.error("a statement"));
    };
    Ok(Some(statement))
}

fn takes_table(cursor: &mut Cursor<'_>, verb: &str) -> bool {
    cursor.take_keywords(&[verb, "TABLE"]) || cursor.take_keywords(&[verb, "COLUMNFAMILY"])
}

fn create_type(cursor: &mut Cursor<'_>) -> Result<Statement> {
    cursor.take_keywords(&["IF", "NOT", "EXISTS"]);
    let QualifiedName { keyspace, name } = cursor.qualified_name("the name of a type")?;
    let fields = cursor.list(field)?;
    Ok(Statement::CreateType(RawUserType {
        keyspace,
        name: name.text,
        fields,
    }))
}

fn field(cursor: &mut Cursor<'_>) -> Result<(String, RawType)> {
    Ok((cursor.name("a field")?.text, RawType::parse(cursor)?))
}

fn alter_type(cursor: &mut Cursor<'_>) -> Result<Option<Statement>> {
    cursor.take_keywords(&["IF", "EXISTS"]);
    let name = cursor.qualified_name("the name of a type")?;
    let change = if cursor.take_keyword("ADD") {
        cursor.take_keywords(&["IF", "NOT", "EXISTS"]);
        TypeChange::Add(vec![field(cursor)?])
    } else if cursor.take_keyword("RENAME") {
        cursor.take_keywords(&["IF", "EXISTS"]);
        let renamed = renamings(cursor)?;
        TypeChange::Rename(renamed.into_iter().map(|(a, b)| (a.text, b.text)).collect())
    } else {
        cursor.skip_statement();
        return Ok(None);
    };
    Ok(Some(Statement::AlterType { name, change }))
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

fn create_table(cursor: &mut Cursor<'_>) -> Result<Statement> {
    cursor.take_keywords(&["IF", "NOT", "EXISTS"]);
    let name = cursor.qualified_name("the name of a table")?;
    let mut columns = Vec::new();
    let (mut partition_key, mut clustering) = (Vec::new(), Vec::new());
    cursor.list(|cursor| {
        if cursor.is_keyword("PRIMARY") && cursor.is_keyword_at(1, "KEY") {
            (partition_key, clustering) = primary_key(cursor)?;
            return Ok(());
        }
        let (column, is_primary_key) = column(cursor)?;
        if is_primary_key {
            partition_key = vec![column.name.clone()];
        }
        columns.push(column);
        Ok(())
    })?;
    if partition_key.is_empty() {
        return Err(cursor.error("a PRIMARY KEY before the end of the columns"));
    }
    let properties = with_properties(cursor)?;
    Ok(Statement::CreateTable(CreateTable {
        name,
        columns,
        partition_key,
        clustering,
        properties,
    }))
}

/// Reads `[WITH property AND property ...]`.
fn with_properties(cursor: &mut Cursor<'_>) -> Result<Properties> {
    match cursor.take_keyword("WITH") {
        true => parse_properties(cursor),
        false => Ok(Properties::default()),
    }
}

/// Reads `PRIMARY KEY ( a, b )` or `PRIMARY KEY ( (a, b), c )`.
fn primary_key(cursor: &mut Cursor<'_>) -> Result<(Vec<Name>, Vec<Name>)> {
    cursor.expect_keyword("PRIMARY")?;
    cursor.expect_keyword("KEY")?;
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

/// Reads `name type [STATIC] [PRIMARY KEY] [mask] [constraints]`; also returns whether it is the primary key.
fn column(cursor: &mut Cursor<'_>) -> Result<(RawColumn, bool)> {
    let name = cursor.name("a column")?;
    let raw_type = RawType::parse(cursor)?;
    let (mut is_static, mut is_primary_key) = (false, false);
    loop {
        if cursor.take_keyword("STATIC") {
            is_static = true;
        } else if cursor.take_keywords(&["PRIMARY", "KEY"]) {
            is_primary_key = true;
        } else if cursor.is_keyword("MASKED") {
            skip_mask(cursor);
        } else {
            break;
        }
    }
    if cursor.is_keyword("CHECK") || cursor.is_keyword("NOT") {
        // Constraints do not affect the bytes on disk.
        skip_to_item_end(cursor);
    }
    Ok((
        RawColumn {
            name,
            raw_type,
            is_static,
        },
        is_primary_key,
    ))
}

/// Skips `MASKED WITH function(arguments)`.
fn skip_mask(cursor: &mut Cursor<'_>) {
    while !cursor.is_at_end() {
        match cursor.peek() {
            TokenKind::Symbol('(') => {
                cursor.advance();
                loop {
                    cursor.skip_item();
                    if !cursor.take_symbol(',') {
                        break;
                    }
                }
                cursor.take_symbol(')');
                return;
            }
            TokenKind::Symbol(',' | ')' | ';') => return,
            _ => {
                cursor.advance();
            }
        }
    }
}

/// Skips to the `,` or `)` of the list of columns, or to the end of the statement.
fn skip_to_item_end(cursor: &mut Cursor<'_>) {
    let mut depth = 0usize;
    loop {
        match cursor.peek() {
            TokenKind::End | TokenKind::Symbol(';') => return,
            TokenKind::Symbol(',' | ')') if depth == 0 => return,
            TokenKind::Symbol('(') => depth += 1,
            TokenKind::Symbol(')') => depth -= 1,
            _ => {}
        }
        cursor.advance();
    }
}

/// Reads `name AS SELECT ... FROM base WHERE ... PRIMARY KEY (...) WITH ...`.
fn create_view(cursor: &mut Cursor<'_>) -> Result<Statement> {
    cursor.take_keywords(&["IF", "NOT", "EXISTS"]);
    let name = cursor.qualified_name("the name of a view")?;
    skip_to_keyword(cursor, "FROM")?;
    let base = cursor.qualified_name("the base table")?;
    while !(cursor.is_keyword("PRIMARY") && cursor.is_keyword_at(1, "KEY")) {
        skip_one(cursor, "PRIMARY KEY")?;
    }
    let (mut key, clustering) = primary_key(cursor)?;
    key.extend(clustering);
    let properties = with_properties(cursor)?;
    Ok(Statement::CreateView {
        name,
        base,
        key,
        properties,
    })
}

fn skip_to_keyword(cursor: &mut Cursor<'_>, keyword: &str) -> Result<()> {
    while !cursor.take_keyword(keyword) {
        skip_one(cursor, keyword)?;
    }
    Ok(())
}

fn skip_one(cursor: &mut Cursor<'_>, wanted: &str) -> Result<()> {
    if matches!(cursor.peek(), TokenKind::End | TokenKind::Symbol(';')) {
        return Err(cursor.error(wanted));
    }
    cursor.advance();
    Ok(())
}

fn alter_table(cursor: &mut Cursor<'_>) -> Result<Statement> {
    cursor.take_keywords(&["IF", "EXISTS"]);
    let name = cursor.qualified_name("the name of a table")?;
    let mut changes = Vec::new();
    if cursor.take_keyword("ADD") {
        cursor.take_keywords(&["IF", "NOT", "EXISTS"]);
        let added = cursor.items(|cursor| column(cursor).map(|(column, _)| column))?;
        changes.push(TableChange::Add(added));
    } else if cursor.is_keyword("DROP") && !cursor.is_keyword_at(1, "COMPACT") {
        cursor.advance();
        changes.push(drop_columns(cursor)?);
    } else if cursor.take_keyword("RENAME") {
        cursor.take_keywords(&["IF", "EXISTS"]);
        changes.push(TableChange::Rename(renamings(cursor)?));
    } else if cursor.take_keyword("WITH") {
        changes.push(TableChange::With(Box::new(parse_properties(cursor)?)));
    } else {
        cursor.skip_statement();
    }
    Ok(Statement::AlterTable { name, changes })
}

/// Reads `[IF EXISTS] a, b` or `(a, b)`, then `[USING TIMESTAMP micros]`.
fn drop_columns(cursor: &mut Cursor<'_>) -> Result<TableChange> {
    cursor.take_keywords(&["IF", "EXISTS"]);
    let names = cursor.items(|cursor| cursor.name("a column"))?;
    let mut at_micros = None;
    if cursor.take_keywords(&["USING", "TIMESTAMP"]) {
        let sign = if cursor.take_symbol('-') { "-" } else { "" };
        let parsed = match cursor.peek() {
            TokenKind::Number(number) => format!("{sign}{number}").parse().ok(),
            _ => None,
        };
        let Some(micros) = parsed else {
            return Err(cursor.error("a timestamp of 64 bits"));
        };
        cursor.advance();
        at_micros = Some(micros);
    }
    Ok(TableChange::Drop { names, at_micros })
}

/// Reads `[name] ON table`, and skips `(target) [USING 'class'] [WITH OPTIONS = {...}]`.
fn create_index(cursor: &mut Cursor<'_>) -> Result<Statement> {
    cursor.take_keywords(&["IF", "NOT", "EXISTS"]);
    let name = if cursor.is_keyword("ON") {
        None
    } else {
        Some(cursor.qualified_name("the name of an index")?.name.text)
    };
    cursor.expect_keyword("ON")?;
    let table = cursor.qualified_name("the name of a table")?;
    cursor.skip_statement();
    Ok(Statement::CreateIndex { name, table })
}
