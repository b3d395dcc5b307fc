//! Counter contexts: the value of a counter cell.
//!
//! ```text
//! context := i16 n | |n| * i16 header element | shard*
//! shard   := counter id (16 bytes) | i64 clock | i64 count
//! ```
//!
//! Shards ascend by id. A header element `i >= 0` makes shard `i` local; `i - 32768` makes it global. Shards
//! that are not listed are remote. After a negative `n` the reader treats local shards as remote.
//!
//! Source: `CounterContext`.

use std::cmp::Ordering;

use crate::error::{Error, Result};

const SHARD_LEN: usize = 32;
const ID_LEN: usize = 16;

/// A validated counter context.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    elements: &'a [[u8; 2]],
    shards: &'a [[u8; SHARD_LEN]],
    bytes: &'a [u8],
    count: i16,
}

/// Result of merging two contexts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merged {
    /// The left context, which includes the right one.
    Left,
    /// The right context, which includes the left one.
    Right,
    /// A new context, which was appended to the output.
    New,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ShardKind {
    Global,
    Local,
    Remote,
}

#[derive(Clone, Copy, Debug)]
struct Shard<'a> {
    kind: ShardKind,
    id: &'a [u8],
    clock: i64,
    count: i64,
}

impl<'a> Context<'a> {
    /// Validates the lengths of a context.
    ///
    /// # Errors
    /// Corruption, with offset 0, if the header is truncated or shards are not whole.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Context<'a>> {
        let Some((&[high, low], rest)) = bytes.split_first_chunk::<2>() else {
            return Err(bad_context(bytes, "a counter context of 2 bytes or more"));
        };
        let count = i16::from_be_bytes([high, low]);
        let header_len = 2 * usize::from(count.unsigned_abs());
        let Some((elements, shards)) = rest.split_at_checked(header_len) else {
            return Err(bad_context(
                bytes,
                "a counter context with its whole header",
            ));
        };
        let (shards, cut) = shards.as_chunks::<SHARD_LEN>();
        if !cut.is_empty() {
            return Err(bad_context(bytes, "a counter context of whole shards"));
        }
        Ok(Context {
            elements: elements.as_chunks::<2>().0,
            shards,
            bytes,
            count,
        })
    }

    /// Value of the counter: the sum of its shards (`CounterContext.total`).
    pub fn total(&self) -> i64 {
        let count = |shard: &[u8; SHARD_LEN]| {
            let count = shard.last_chunk::<8>();
            count.map_or(0, |count| i64::from_be_bytes(*count))
        };
        self.shards.iter().map(count).fold(0, i64::wrapping_add)
    }

    /// Whether local shards are to be made remote (`shouldClearLocal`).
    #[inline]
    pub fn should_clear_local(&self) -> bool {
        self.count < 0
    }

    /// Whether some shard is local or remote: written before Cassandra 2.1.
    #[inline]
    pub fn has_legacy_shards(&self) -> bool {
        self.elements.len() < self.shards.len()
            || self.elements.iter().any(|e| i16::from_be_bytes(*e) >= 0)
    }

    /// Appends the context without local header elements, which makes local shards remote. Returns false,
    /// with nothing appended, if there are none (`clearAllLocal`).
    pub fn clear_local(&self, out: &mut Vec<u8>) -> bool {
        let globals = || self.elements.iter().filter(|e| i16::from_be_bytes(**e) < 0);
        let count = globals().count();
        if count == self.elements.len() {
            return false;
        }
        out.extend_from_slice(&(count as i16).to_be_bytes());
        for element in globals() {
            out.extend_from_slice(element);
        }
        out.extend_from_slice(&self.bytes[2 + 2 * self.elements.len()..]);
        true
    }

    fn cursor(&self) -> Cursor<'a> {
        Cursor {
            context: *self,
            index: 0,
            element: 0,
        }
    }
}

#[cold]
fn bad_context(bytes: &[u8], expected: &'static str) -> Error {
    let found = format!("{} bytes", bytes.len());
    Error::corrupt("row.cell.counter", 0, expected, found)
}

/// Iterates over shards and header elements together.
#[derive(Clone, Copy, Debug)]
struct Cursor<'a> {
    context: Context<'a>,
    index: usize,
    element: usize,
}

impl<'a> Cursor<'a> {
    fn shard(&self) -> Option<Shard<'a>> {
        let shard = self.context.shards.get(self.index)?;
        let (id, rest) = shard.split_at(ID_LEN);
        let word = |at: usize| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&rest[at..at + 8]);
            i64::from_be_bytes(bytes)
        };
        let kind = match self
            .context
            .elements
            .get(self.element)
            .map(|e| i16::from_be_bytes(*e))
        {
            Some(e) if i64::from(e) == self.index as i64 + i64::from(i16::MIN) => ShardKind::Global,
            Some(e) if i64::from(e) == self.index as i64 => ShardKind::Local,
            _ => ShardKind::Remote,
        };
        Some(Shard {
            kind,
            id,
            clock: word(0),
            count: word(8),
        })
    }

    fn advance(&mut self) {
        if self.shard().is_some_and(|s| s.kind != ShardKind::Remote) {
            self.element += 1;
        }
        self.index += 1;
    }
}

/// Returns which of two shards with one id wins; `None` for two local ones, which are added up.
fn compare(left: &Shard<'_>, right: &Shard<'_>) -> Option<Ordering> {
    use ShardKind::{Global, Local, Remote};
    Some(match (left.kind, right.kind) {
        (Global, Global) => (left.clock, left.count).cmp(&(right.clock, right.count)),
        (Global, _) => Ordering::Greater,
        (_, Global) => Ordering::Less,
        (Local, Local) => return None,
        (Local, Remote) => Ordering::Greater,
        (Remote, Local) => Ordering::Less,
        (Remote, Remote) if left.clock == right.clock => left.count.cmp(&right.count),
        (Remote, Remote) => {
            // Negative clocks are those of 0.8 counters that were reset; a positive one wins over them.
            let (l, r) = (left.clock, right.clock);
            let left_wins = if r > 0 { l >= r || l < 0 } else { l < r };
            if left_wins {
                Ordering::Greater
            } else {
                Ordering::Less
            }
        }
    })
}

/// Merges two contexts. Appends the result to `out` if neither includes the other.
pub fn merge(left: &Context<'_>, right: &Context<'_>, out: &mut Vec<u8>) -> Merged {
    let (mut left_is_superset, mut right_is_superset) = (true, true);
    for_each_shard(left, right, |from| match from {
        From::Left(_) => right_is_superset = false,
        From::Right(_) => left_is_superset = false,
        From::Both(l, r) => match compare(&l, &r) {
            None => (left_is_superset, right_is_superset) = (false, false),
            Some(Ordering::Greater) => right_is_superset = false,
            Some(Ordering::Less) => left_is_superset = false,
            Some(Ordering::Equal) => {}
        },
    });
    if left_is_superset {
        return Merged::Left;
    }
    if right_is_superset {
        return Merged::Right;
    }
    // Two passes, since header elements precede the shards.
    let mut elements = 0u16;
    let header_at = out.len();
    out.extend_from_slice(&[0, 0]);
    let mut index = 0i16;
    for_each_shard(left, right, |from| {
        let element = match from.winner().kind {
            ShardKind::Global => Some(index.wrapping_add(i16::MIN)),
            ShardKind::Local => Some(index),
            ShardKind::Remote => None,
        };
        if let Some(element) = element {
            out.extend_from_slice(&element.to_be_bytes());
            // As Java's cast to short.
            elements = elements.wrapping_add(1);
        }
        index = index.wrapping_add(1);
    });
    out[header_at..header_at + 2].copy_from_slice(&elements.to_be_bytes());
    for_each_shard(left, right, |from| {
        let shard = from.winner();
        out.extend_from_slice(shard.id);
        out.extend_from_slice(&shard.clock.to_be_bytes());
        out.extend_from_slice(&shard.count.to_be_bytes());
    });
    Merged::New
}

/// Source of the shards with one id.
enum From<'a> {
    Left(Shard<'a>),
    Right(Shard<'a>),
    Both(Shard<'a>, Shard<'a>),
}

impl<'a> From<'a> {
    fn winner(&self) -> Shard<'a> {
        match *self {
            From::Left(shard) | From::Right(shard) => shard,
            From::Both(left, right) => match compare(&left, &right) {
                None => Shard {
                    clock: left.clock.wrapping_add(right.clock),
                    count: left.count.wrapping_add(right.count),
                    ..left
                },
                Some(Ordering::Greater) => left,
                Some(_) => right,
            },
        }
    }
}

fn for_each_shard<'a>(left: &Context<'a>, right: &Context<'a>, mut visit: impl FnMut(From<'a>)) {
    let (mut l, mut r) = (left.cursor(), right.cursor());
    loop {
        let order = match (l.shard(), r.shard()) {
            (Some(a), Some(b)) => a.id.cmp(b.id),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => return,
        };
        match (order, l.shard(), r.shard()) {
            (Ordering::Equal, Some(a), Some(b)) => visit(From::Both(a, b)),
            (Ordering::Less, Some(a), _) => visit(From::Left(a)),
            (_, _, Some(b)) => visit(From::Right(b)),
            _ => return,
        }
        if order.is_le() {
            l.advance();
        }
        if order.is_ge() {
            r.advance();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context(shards: &[(char, u8, i64, i64)]) -> Vec<u8> {
        let mut header = Vec::new();
        let mut body = Vec::new();
        for (index, (kind, id, clock, count)) in shards.iter().enumerate() {
            match kind {
                'g' => header.push(index as i16 + i16::MIN),
                'l' => header.push(index as i16),
                _ => {}
            }
            body.extend_from_slice(&[*id; 16]);
            body.extend_from_slice(&clock.to_be_bytes());
            body.extend_from_slice(&count.to_be_bytes());
        }
        let mut out = (header.len() as i16).to_be_bytes().to_vec();
        header
            .iter()
            .for_each(|e| out.extend_from_slice(&e.to_be_bytes()));
        out.extend_from_slice(&body);
        out
    }

    fn merged(left: &[u8], right: &[u8]) -> (Merged, Vec<u8>) {
        let mut out = Vec::new();
        let which = merge(
            &Context::parse(left).unwrap(),
            &Context::parse(right).unwrap(),
            &mut out,
        );
        match which {
            Merged::Left => (which, left.to_vec()),
            Merged::Right => (which, right.to_vec()),
            Merged::New => (which, out),
        }
    }

    #[test]
    fn one_shard_against_another() {
        for (left, right, winner) in [
            (('g', 1, 2, 5), ('g', 1, 3, 1), ('g', 1, 3, 1)),
            (('g', 1, 2, 5), ('g', 1, 2, 7), ('g', 1, 2, 7)),
            (('g', 1, 1, 1), ('l', 1, 9, 9), ('g', 1, 1, 1)),
            (('l', 1, 2, 3), ('r', 1, 9, 9), ('l', 1, 2, 3)),
            (('l', 1, 2, 3), ('l', 1, 4, 5), ('l', 1, 6, 8)),
            (('r', 1, 2, 3), ('r', 1, 4, 1), ('r', 1, 4, 1)),
            (('r', 1, 4, 3), ('r', 1, 4, 8), ('r', 1, 4, 8)),
            (('r', 1, -5, 3), ('r', 1, 4, 8), ('r', 1, -5, 3)),
            (('r', 1, -5, 3), ('r', 1, -4, 8), ('r', 1, -5, 3)),
        ] {
            let expected = context(&[winner]);
            assert_eq!(
                merged(&context(&[left]), &context(&[right])).1,
                expected,
                "{left:?} {right:?}"
            );
        }
    }

    #[test]
    fn supersets_are_returned_as_they_are() {
        let small = context(&[('g', 2, 1, 1)]);
        let big = context(&[('g', 1, 1, 1), ('g', 2, 1, 1), ('r', 3, 1, 1)]);
        assert_eq!(merged(&big, &small).0, Merged::Left);
        assert_eq!(merged(&small, &big).0, Merged::Right);
        assert_eq!(merged(&big, &big).0, Merged::Left);
        let other = context(&[('l', 4, 1, 1)]);
        let all = context(&[
            ('g', 1, 1, 1),
            ('g', 2, 1, 1),
            ('r', 3, 1, 1),
            ('l', 4, 1, 1),
        ]);
        assert_eq!(merged(&big, &other), (Merged::New, all.clone()));
        assert_eq!(merged(&other, &big), (Merged::New, all));
    }

    #[test]
    fn clearing_local_shards() {
        let mut marked = context(&[('g', 1, 1, 1), ('l', 2, 1, 1), ('r', 3, 1, 1)]);
        marked[..2].copy_from_slice(&(-2i16).to_be_bytes());
        let parsed = Context::parse(&marked).unwrap();
        assert!(parsed.should_clear_local() && parsed.has_legacy_shards());
        let mut out = Vec::new();
        assert!(parsed.clear_local(&mut out));
        assert_eq!(
            out,
            context(&[('g', 1, 1, 1), ('r', 2, 1, 1), ('r', 3, 1, 1)])
        );
        let global = context(&[('g', 1, 1, 1)]);
        assert!(!Context::parse(&global).unwrap().clear_local(&mut out));
        assert!(!Context::parse(&global).unwrap().has_legacy_shards());
    }

    #[test]
    fn cut_contexts_are_refused() {
        let whole = context(&[('g', 1, 1, 1), ('l', 2, 1, 1)]);
        for len in 0..whole.len() {
            let is_whole_shards = len >= 6 && (len - 6) % 32 == 0;
            assert_eq!(
                Context::parse(&whole[..len]).is_ok(),
                is_whole_shards,
                "{len}"
            );
        }
    }
}
