//! Cell paths, which distinguish the cells of a complex column, and the types of its cells.
//!
//! | Column | Path | Cell |
//! |---|---|---|
//! | list | timeuuid | element |
//! | set | element | empty |
//! | map | key | value |
//! | UDT | smallint, index of the field | field |
//!
//! Source: `ColumnMetadata.makeCellPathComparator`, `CollectionType.nameComparator`,
//! `UserType.nameComparator`.

use std::cmp::Ordering;

use crate::types::CqlType;

static TIME_UUID: CqlType = CqlType::TimeUuid;
static SHORT: CqlType = CqlType::Short;
static EMPTY: CqlType = CqlType::Empty;

impl CqlType {
    /// Type of the cell paths; `None` unless multi-cell.
    pub fn path_type(&self) -> Option<&CqlType> {
        match self {
            CqlType::List {
                multi_cell: true, ..
            } => Some(&TIME_UUID),
            CqlType::Set {
                multi_cell: true,
                element,
            } => Some(element),
            CqlType::Map {
                multi_cell: true,
                key,
                ..
            } => Some(key),
            CqlType::Udt(udt) if udt.multi_cell => Some(&SHORT),
            _ => None,
        }
    }

    /// Compares two cell paths of a multi-cell type; for other types, their bytes.
    pub fn compare_paths(&self, a: &[u8], b: &[u8]) -> Ordering {
        match self.path_type() {
            Some(path) => path.compare(a, b),
            None => a.cmp(b),
        }
    }

    /// Type of the cell at `path`: that of the whole column unless multi-cell; `None` if a UDT has no such
    /// field.
    pub fn cell_type(&self, path: &[u8]) -> Option<&CqlType> {
        match self {
            CqlType::List {
                multi_cell: true,
                element,
            } => Some(element),
            CqlType::Set {
                multi_cell: true, ..
            } => Some(&EMPTY),
            CqlType::Map {
                multi_cell: true,
                value,
                ..
            } => Some(value),
            CqlType::Udt(udt) if udt.multi_cell => {
                let index = u16::from_be_bytes(<[u8; 2]>::try_from(path).ok()?);
                udt.fields.get(usize::from(index)).map(|(_, field)| field)
            }
            other => Some(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> CqlType {
        CqlType::parse(text).unwrap()
    }

    #[test]
    fn paths_by_kind_of_column() {
        let list = parse("ListType(Int32Type)");
        assert_eq!(list.path_type(), Some(&CqlType::TimeUuid));
        assert_eq!(list.cell_type(&[0; 16]), Some(&CqlType::Int32));
        let set = parse("SetType(IntegerType)");
        assert_eq!(set.compare_paths(&[0, 1], &[1]), Ordering::Equal);
        assert_eq!(set.cell_type(&[1]), Some(&CqlType::Empty));
        let map = parse("MapType(LongType,UTF8Type)");
        assert_eq!(map.path_type(), Some(&CqlType::Long));
        assert_eq!(map.cell_type(&[]), Some(&CqlType::Utf8));
        let udt = parse("UserType(ks,74,61:Int32Type,62:UTF8Type)");
        // A smallint: the first byte is signed.
        assert_eq!(udt.compare_paths(&[0xff, 0], &[0, 0]), Ordering::Less);
        assert_eq!(udt.cell_type(&[0, 1]), Some(&CqlType::Utf8));
        assert_eq!(udt.cell_type(&[0, 2]), None);
        assert_eq!(udt.cell_type(&[1]), None);
        let frozen = parse("FrozenType(ListType(Int32Type))");
        assert_eq!(frozen.path_type(), None);
        assert_eq!(frozen.cell_type(&[]), Some(&frozen));
    }
}
