//! Types in CQL, unresolved and resolved with the UDTs that the text declares.
//!
//! Source: `CQL3Type.Raw`, rule `comparatorType` of `Parser.g`.

use std::collections::HashMap;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::schema::cursor::{Cursor, Name};
use crate::schema::lexer::TokenKind;
use crate::types::parse::MAX_DEPTH;
use crate::types::{CqlType, UserType, simple};

/// An unresolved type.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum RawType {
    Known(CqlType),
    Frozen(Box<RawType>),
    List(Box<RawType>),
    Set(Box<RawType>),
    Map(Box<RawType>, Box<RawType>),
    Tuple(Vec<RawType>),
    Vector(Box<RawType>, u32),
    User {
        keyspace: Option<String>,
        name: Name,
    },
}

impl RawType {
    /// Whether its elements are separate cells of a column.
    pub(super) fn is_multi_cell(&self) -> bool {
        match self {
            RawType::Known(known) => known.is_multi_cell(),
            RawType::List(_) | RawType::Set(_) | RawType::Map(..) | RawType::User { .. } => true,
            RawType::Frozen(_) | RawType::Tuple(_) | RawType::Vector(..) => false,
        }
    }

    pub(super) fn parse(cursor: &mut Cursor<'_>) -> Result<RawType> {
        RawType::parse_at(cursor, 0)
    }

    fn parse_at(cursor: &mut Cursor<'_>, depth: usize) -> Result<RawType> {
        if depth >= MAX_DEPTH {
            return Err(cursor.error(format!("types nested at most {MAX_DEPTH} deep")));
        }
        if let TokenKind::Text(class) = cursor.peek() {
            let class = class.clone();
            cursor.advance();
            return Ok(RawType::Known(CqlType::parse(&class)?));
        }
        if *cursor.peek_at(1) == TokenKind::Symbol('<')
            && let TokenKind::Word(word) = cursor.peek()
        {
            let word = word.to_ascii_lowercase();
            return RawType::parse_parameterized(cursor, &word, depth + 1);
        }
        let first = cursor.name("a type")?;
        if cursor.take_symbol('.') {
            let name = cursor.name("the name of a type")?;
            return Ok(RawType::User {
                keyspace: Some(first.text),
                name,
            });
        }
        match simple::of_cql_name(&first.text) {
            Some(native) if !first.quoted => Ok(RawType::Known(native)),
            _ => Ok(RawType::User {
                keyspace: None,
                name: first,
            }),
        }
    }

    fn parse_parameterized(cursor: &mut Cursor<'_>, word: &str, depth: usize) -> Result<RawType> {
        // Creating an error counts lines from the start of the text, so it is done only when needed.
        if !["frozen", "list", "set", "map", "tuple", "vector"].contains(&word) {
            return Err(cursor.error("frozen, list, set, map, tuple or vector before '<'"));
        }
        cursor.advance();
        cursor.expect_symbol('<')?;
        let next = |cursor: &mut Cursor<'_>| RawType::parse_at(cursor, depth);
        let parsed = match word {
            "frozen" => RawType::Frozen(Box::new(next(cursor)?)),
            "list" => RawType::List(Box::new(next(cursor)?)),
            "set" => RawType::Set(Box::new(next(cursor)?)),
            "map" => {
                let key = next(cursor)?;
                cursor.expect_symbol(',')?;
                RawType::Map(Box::new(key), Box::new(next(cursor)?))
            }
            "tuple" => {
                let mut types = vec![next(cursor)?];
                while cursor.take_symbol(',') {
                    types.push(next(cursor)?);
                }
                RawType::Tuple(types)
            }
            _ => {
                let element = next(cursor)?;
                cursor.expect_symbol(',')?;
                let dimension = match cursor.peek() {
                    TokenKind::Number(number) => number.parse::<i32>().ok().filter(|n| *n > 0),
                    _ => None,
                };
                let Some(dimension) = dimension else {
                    return Err(cursor.error("a vector dimension from 1 to 2147483647"));
                };
                cursor.advance();
                RawType::Vector(Box::new(element), dimension as u32)
            }
        };
        cursor.expect_symbol('>')?;
        Ok(parsed)
    }
}

/// A `CREATE TYPE` statement.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RawUserType {
    pub(super) keyspace: Option<String>,
    pub(super) name: String,
    pub(super) fields: Vec<(String, RawType)>,
}

/// Maximum number of types in one column after its UDTs are resolved: nested types grow exponentially.
const MAX_EXPANDED: u64 = 100_000;

/// Resolver of names of UDTs to their fields.
pub(super) struct Resolver<'a> {
    declared: &'a [RawUserType],
    /// Index in `declared` by keyspace and name, and of the first one by name alone.
    by_full_name: HashMap<(Option<&'a str>, &'a str), usize>,
    by_name: HashMap<&'a str, usize>,
    /// Resolved types by their index in `declared`.
    resolved: HashMap<usize, Resolved>,
}

/// A UDT with resolved types.
#[derive(Clone)]
struct Resolved {
    frozen: Arc<UserType>,
    /// The type when it is not frozen; shared by all columns that have it.
    multi_cell: Arc<UserType>,
    /// Total number of types in it.
    size: u64,
}

enum Unresolved {
    UnknownType,
    Refused(Error),
}

/// Context of a type.
#[derive(Clone, Copy)]
struct Context<'k> {
    frozen: bool,
    keyspace: Option<&'k str>,
    depth: usize,
}

impl<'a> Resolver<'a> {
    pub(super) fn new(declared: &'a [RawUserType]) -> Resolver<'a> {
        let mut by_full_name = HashMap::with_capacity(declared.len());
        let mut by_name = HashMap::with_capacity(declared.len());
        for (index, udt) in declared.iter().enumerate() {
            let name = udt.name.as_str();
            by_full_name
                .entry((udt.keyspace.as_deref(), name))
                .or_insert(index);
            by_name.entry(name).or_insert(index);
        }
        Resolver {
            declared,
            by_full_name,
            by_name,
            resolved: HashMap::new(),
        }
    }

    /// Returns the type of a column in a table of `keyspace`; `None` if it names an unknown UDT.
    pub(super) fn resolve(
        &mut self,
        raw: &RawType,
        keyspace: Option<&str>,
    ) -> Result<Option<CqlType>> {
        let context = Context {
            frozen: false,
            keyspace,
            depth: 0,
        };
        match self.resolve_in(raw, context) {
            Ok((resolved, _)) => Ok(Some(resolved)),
            Err(Unresolved::UnknownType) => Ok(None),
            Err(Unresolved::Refused(error)) => Err(error),
        }
    }

    fn resolve_in(
        &mut self,
        raw: &RawType,
        context: Context<'_>,
    ) -> Result<(CqlType, u64), Unresolved> {
        if context.depth >= MAX_DEPTH {
            let what = format!("a type nested deeper than {MAX_DEPTH} levels");
            return Err(Unresolved::Refused(Error::unsupported(what)));
        }
        let multi_cell = !context.frozen;
        let inner = Context {
            frozen: true,
            depth: context.depth + 1,
            ..context
        };
        let mut size = 1;
        let mut part = |resolver: &mut Self, raw: &RawType| -> Result<CqlType, Unresolved> {
            let (resolved, part_size) = resolver.resolve_in(raw, inner)?;
            size += part_size;
            Ok(resolved)
        };
        let resolved = match raw {
            RawType::Known(known) => known.clone(),
            RawType::Frozen(frozen) => {
                // Not a nesting level of its own; its repetition was limited while parsing.
                return self.resolve_in(
                    frozen,
                    Context {
                        frozen: true,
                        ..context
                    },
                );
            }
            RawType::List(element) => CqlType::List {
                element: Arc::new(part(self, element)?),
                multi_cell,
            },
            RawType::Set(element) => CqlType::Set {
                element: Arc::new(part(self, element)?),
                multi_cell,
            },
            RawType::Map(key, value) => CqlType::Map {
                key: Arc::new(part(self, key)?),
                value: Arc::new(part(self, value)?),
                multi_cell,
            },
            RawType::Tuple(types) => {
                let types: Result<Vec<CqlType>, Unresolved> =
                    types.iter().map(|field| part(self, field)).collect();
                CqlType::Tuple(types?.into())
            }
            RawType::Vector(element, dimension) => {
                // Its element is not frozen by it (`CQL3Type.Raw.RawVector`).
                let context = Context {
                    depth: inner.depth,
                    ..context
                };
                let (element, element_size) = self.resolve_in(element, context)?;
                size += element_size;
                CqlType::Vector {
                    element: Arc::new(element),
                    dimension: *dimension,
                }
            }
            RawType::User { keyspace, name } => {
                let owner = keyspace.as_deref().or(context.keyspace);
                let udt = self.user_type(name, owner, inner)?;
                size += udt.size;
                CqlType::Udt(if multi_cell {
                    udt.multi_cell
                } else {
                    udt.frozen
                })
            }
        };
        if size > MAX_EXPANDED {
            let what = format!("a type that consists of more than {MAX_EXPANDED} types");
            return Err(Unresolved::Refused(Error::unsupported(what)));
        }
        Ok((resolved, size))
    }

    fn user_type(
        &mut self,
        name: &Name,
        keyspace: Option<&str>,
        context: Context<'_>,
    ) -> Result<Resolved, Unresolved> {
        let wanted = name.text.as_str();
        let index = match keyspace {
            Some(keyspace) => self
                .by_full_name
                .get(&(Some(keyspace), wanted))
                .or_else(|| self.by_full_name.get(&(None, wanted))),
            // A text that names its keyspace only in some statements has a single keyspace.
            None => self.by_name.get(wanted),
        };
        let Some(&index) = index else {
            return Err(Unresolved::UnknownType);
        };
        if let Some(resolved) = self.resolved.get(&index) {
            return Ok(resolved.clone());
        }
        let declared = &self.declared[index];
        let keyspace = declared.keyspace.as_deref().or(keyspace);
        let mut size = 1;
        let mut fields = Vec::with_capacity(declared.fields.len());
        for (field, raw) in &declared.fields {
            let (resolved, field_size) = self.resolve_in(
                raw,
                Context {
                    keyspace,
                    ..context
                },
            )?;
            size += field_size;
            fields.push((field.as_bytes().to_vec(), resolved));
        }
        let frozen = UserType {
            keyspace: keyspace.unwrap_or_default().to_owned(),
            name: declared.name.as_bytes().to_vec(),
            fields,
            multi_cell: false,
        };
        let multi_cell = Arc::new(UserType {
            multi_cell: true,
            ..frozen.clone()
        });
        let resolved = Resolved {
            frozen: Arc::new(frozen),
            multi_cell,
            size,
        };
        self.resolved.insert(index, resolved.clone());
        Ok(resolved)
    }
}
