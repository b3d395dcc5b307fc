//! Traversal of the values in a value: collections, tuples, vectors and composites.
//!
//! The same traversal is used for order, validation and rendering. It never fails: bytes that end too early
//! are returned as [`Item::Broken`], after which nothing follows.
//!
//! Source: `CollectionSerializer.readValue`, `TupleType.unpack`, `VectorType.readValue`,
//! `AbstractCompositeType.split`.

use crate::types::CqlType;
use crate::vint;

/// Item of a value.
///
/// The variants are declared in the order in which they sort in a collection, in which a shorter one comes
/// first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Item<'a> {
    /// The value ends here, as expected.
    End,
    /// The value ends within an element: its remaining bytes.
    Broken(&'a [u8]),
    /// A null, which only tuples and UDTs may contain.
    Null,
    /// An element's bytes.
    Value(&'a [u8]),
}

/// Reader of the elements of a value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Elements<'a> {
    rest: &'a [u8],
}

impl<'a> Elements<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Elements<'a> {
        Elements { rest: bytes }
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    fn broken(&mut self) -> Item<'a> {
        Item::Broken(std::mem::take(&mut self.rest))
    }

    fn take(&mut self, header_len: usize, len: usize) -> Item<'a> {
        let tail = self.rest.get(header_len..).unwrap_or_default();
        match tail.split_at_checked(len) {
            Some((value, rest)) => {
                self.rest = rest;
                Item::Value(value)
            }
            None => self.broken(),
        }
    }

    /// Reads the `i32 count` of a collection; `None` if there is none or it is negative.
    pub(super) fn count32(&mut self) -> Option<u32> {
        let (head, rest) = self.rest.split_first_chunk::<4>()?;
        let count = u32::try_from(i32::from_be_bytes(*head)).ok()?;
        self.rest = rest;
        Some(count)
    }

    /// Reads `i32 length | bytes`; a negative length is null.
    pub(super) fn next32(&mut self) -> Item<'a> {
        let Some((head, rest)) = self.rest.split_first_chunk::<4>() else {
            return self.broken();
        };
        match usize::try_from(i32::from_be_bytes(*head)) {
            Ok(len) => self.take(4, len),
            Err(_) => {
                self.rest = rest;
                Item::Null
            }
        }
    }

    /// Reads `len` bytes.
    pub(super) fn next_fixed(&mut self, len: usize) -> Item<'a> {
        self.take(0, len)
    }

    /// Reads `uvint length | bytes`.
    pub(super) fn next_vint(&mut self) -> Item<'a> {
        let mut pos = 0;
        match vint::read_unsigned(self.rest, &mut pos).map(usize::try_from) {
            Some(Ok(len)) => self.take(pos, len),
            _ => self.broken(),
        }
    }

    /// Reads one element of a vector.
    pub(super) fn next_of_vector(&mut self, fixed_len: Option<usize>) -> Item<'a> {
        match fixed_len {
            Some(len) => self.next_fixed(len),
            None => self.next_vint(),
        }
    }

    /// Reads `u16 length | bytes | i8 end-of-component` of a composite.
    pub(super) fn next_component(&mut self) -> Component<'a> {
        if self.rest.is_empty() {
            return Component::End;
        }
        let whole = self.rest;
        let taken = self.rest.split_first_chunk::<2>().and_then(|(head, tail)| {
            let (value, tail) = tail.split_at_checked(usize::from(u16::from_be_bytes(*head)))?;
            let (end, tail) = tail.split_first()?;
            Some((value, *end as i8, tail))
        });
        match taken {
            Some((value, end_of_component, rest)) => {
                self.rest = rest;
                Component::Value {
                    value,
                    end_of_component,
                }
            }
            None => {
                self.rest = &[];
                Component::Broken(whole)
            }
        }
    }
}

/// Component of a composite. As for [`Item`], variants are declared in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Component<'a> {
    End,
    Broken(&'a [u8]),
    Value {
        value: &'a [u8],
        end_of_component: i8,
    },
}

/// Skips the marker `FFFF` at the start of a composite of a static column of 2.x.
///
/// Source: `CompositeType.readIsStatic`.
pub(crate) fn split_static_marker(bytes: &[u8]) -> (bool, &[u8]) {
    match bytes.strip_prefix(&[0xff, 0xff]) {
        Some(rest) => (true, rest),
        None => (false, bytes),
    }
}

/// Type of component `index`; bytes beyond the declared ones are compared as blobs.
pub(super) fn component_type(types: &[CqlType], index: usize) -> &CqlType {
    static BLOB: CqlType = CqlType::Bytes;
    types.get(index).unwrap_or(&BLOB)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_beyond_the_bytes_are_broken_not_followed() {
        let mut elements = Elements::new(&[0, 0, 0, 9, 1]);
        assert_eq!(elements.next32(), Item::Broken(&[0, 0, 0, 9, 1]));
        assert_eq!(elements.next32(), Item::Broken(&[]));

        let mut elements = Elements::new(&[0xff, 0xff, 0xff, 0xff, 0, 0, 0, 1, 7]);
        assert_eq!(elements.next32(), Item::Null);
        assert_eq!(elements.next32(), Item::Value(&[7]));
        assert!(elements.is_empty());

        assert_eq!(
            Elements::new(&[0xff; 9]).next_vint(),
            Item::Broken(&[0xff; 9])
        );
        assert_eq!(Elements::new(&[0xff; 4]).count32(), None);
    }

    #[test]
    fn components_carry_their_end_byte() {
        let mut elements = Elements::new(&[0, 1, 5, 0xff, 0, 0, 1, 0, 9]);
        assert_eq!(
            elements.next_component(),
            Component::Value {
                value: &[5],
                end_of_component: -1
            }
        );
        assert_eq!(
            elements.next_component(),
            Component::Value {
                value: &[],
                end_of_component: 1
            }
        );
        assert_eq!(elements.next_component(), Component::Broken(&[0, 9]));
        assert_eq!(elements.next_component(), Component::End);
    }
}
