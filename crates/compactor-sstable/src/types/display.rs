//! Types as written by Cassandra in headers, and in CQL.
//!
//! Source: `AbstractType.toString` and overrides, `TypeParser.stringify*`, `CQL3Type`.

use std::fmt;

use crate::hex::push_hex;
use crate::types::identifier::maybe_quote;
use crate::types::parse::PACKAGE;
use crate::types::{CqlType, UserType, simple};

/// Whether `FrozenType(...)` is written around frozen types.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Freezing {
    Written,
    Omitted,
}

impl CqlType {
    /// Returns the type as written by Cassandra 5.0 and 6.0 in a serialization header.
    ///
    /// `FrozenType` appears once, around the outermost frozen collection or UDT.
    pub fn class_string(&self) -> String {
        let mut out = String::new();
        write_class(self, Freezing::Written, &mut out);
        out
    }

    /// Name of the class without package: `Int32Type`.
    pub fn class_name(&self) -> &'static str {
        match self {
            CqlType::List { .. } => "ListType",
            CqlType::Set { .. } => "SetType",
            CqlType::Map { .. } => "MapType",
            CqlType::Tuple(_) => "TupleType",
            CqlType::Udt(_) => "UserType",
            CqlType::Vector { .. } => "VectorType",
            CqlType::Reversed(_) => "ReversedType",
            CqlType::Composite(_) => "CompositeType",
            CqlType::DynamicComposite(_) => "DynamicCompositeType",
            CqlType::PartitionerDefinedOrder { .. } => "PartitionerDefinedOrder",
            simple => simple::names(simple).map_or("", |(class, _)| class),
        }
    }

    /// Returns the type in CQL: `frozen<list<int>>`. Types without a CQL name are quoted class strings.
    pub fn cql_name(&self) -> String {
        let mut out = String::new();
        write_cql(self, &mut out);
        out
    }
}

/// As [`CqlType::cql_name`].
impl fmt::Display for CqlType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.cql_name())
    }
}

fn write_class(cql_type: &CqlType, freezing: Freezing, out: &mut String) {
    let wrapped = match cql_type {
        CqlType::List { .. } | CqlType::Set { .. } | CqlType::Map { .. } | CqlType::Udt(_) => {
            freezing == Freezing::Written && !cql_type.is_multi_cell()
        }
        _ => false,
    };
    if wrapped {
        out.push_str(PACKAGE);
        out.push_str("FrozenType(");
    }
    // Inside a frozen type it is not repeated.
    let inside = if cql_type.is_multi_cell() {
        freezing
    } else {
        Freezing::Omitted
    };
    out.push_str(PACKAGE);
    out.push_str(cql_type.class_name());
    match cql_type {
        CqlType::List { .. } | CqlType::Set { .. } | CqlType::Map { .. } => {
            write_parameters(cql_type, inside, out);
        }
        CqlType::Tuple(_) => write_parameters(cql_type, Freezing::Omitted, out),
        CqlType::Udt(udt) => write_user_type(udt, inside, out),
        CqlType::Vector { element, dimension } => {
            // A vector is not a frozen collection: it passes the setting on.
            out.push('(');
            write_class(element, freezing, out);
            out.push_str(&format!(" , {dimension})"));
        }
        CqlType::Reversed(_) | CqlType::Composite(_) => {
            write_parameters(cql_type, Freezing::Written, out);
        }
        CqlType::DynamicComposite(aliases) => {
            out.push('(');
            for (index, (alias, component)) in aliases.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                out.push(char::from(*alias));
                out.push_str("=>");
                write_class(component, Freezing::Written, out);
            }
            out.push(')');
        }
        CqlType::PartitionerDefinedOrder {
            partitioner,
            key_type,
        } => {
            out.push('(');
            out.push_str(partitioner);
            if let Some(key_type) = key_type {
                out.push(':');
                write_class(key_type, Freezing::Written, out);
            }
            out.push(')');
        }
        _ => {}
    }
    if wrapped {
        out.push(')');
    }
}

/// Appends the types in a type, in brackets.
fn write_parameters(cql_type: &CqlType, freezing: Freezing, out: &mut String) {
    out.push('(');
    write_parts(cql_type, ",", out, |part, out| {
        write_class(part, freezing, out)
    });
    out.push(')');
}

fn write_parts(
    cql_type: &CqlType,
    separator: &str,
    out: &mut String,
    write: impl Fn(&CqlType, &mut String),
) {
    for (index, part) in cql_type.parts().into_iter().enumerate() {
        if index > 0 {
            out.push_str(separator);
        }
        write(part, out);
    }
}

fn write_user_type(udt: &UserType, freezing: Freezing, out: &mut String) {
    out.push('(');
    out.push_str(&udt.keyspace);
    out.push(',');
    push_hex(&udt.name, out);
    for (name, field) in &udt.fields {
        out.push(',');
        push_hex(name, out);
        out.push(':');
        write_class(field, freezing, out);
    }
    out.push(')');
}

fn write_cql(cql_type: &CqlType, out: &mut String) {
    let (opening, closing) = if cql_type.is_multi_cell() {
        ("", "")
    } else {
        ("frozen<", ">")
    };
    let generic = match cql_type {
        CqlType::Reversed(base) => return write_cql(base, out),
        CqlType::Vector { element, dimension } => {
            out.push_str("vector<");
            write_cql(element, out);
            return out.push_str(&format!(", {dimension}>"));
        }
        CqlType::Udt(udt) => {
            let name = String::from_utf8_lossy(&udt.name);
            return out.push_str(&format!("{opening}{}{closing}", maybe_quote(&name)));
        }
        CqlType::List { .. } => "list",
        CqlType::Set { .. } => "set",
        CqlType::Map { .. } => "map",
        CqlType::Tuple(_) => "tuple",
        other => {
            return match simple::names(other) {
                Some((_, name)) if !name.is_empty() => out.push_str(name),
                _ => out.push_str(&format!("'{}'", other.class_string())),
            };
        }
    };
    out.push_str(&format!("{opening}{generic}<"));
    write_parts(cql_type, ", ", out, write_cql);
    out.push_str(&format!(">{closing}"));
}

#[cfg(test)]
mod tests;
