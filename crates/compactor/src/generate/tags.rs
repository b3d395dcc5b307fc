//! Keys of maps and elements of sets: few, so that rows of several SSTables have the same.

use super::random::Random;

/// How many there are.
const TAGS: u32 = 16;

/// Those of a collection that is inserted, ascending: a quarter of all.
pub(super) fn of_whole(random: &mut Random) -> impl Iterator<Item = u32> + use<> {
    in_bits(random.next() & random.next())
}

/// One or two, ascending.
pub(super) fn one_or_two(random: &mut Random) -> impl Iterator<Item = u32> + use<> {
    in_bits(1 << random.below(TAGS.into()) | 1 << random.below(TAGS.into()))
}

fn in_bits(bits: u64) -> impl Iterator<Item = u32> {
    (0..TAGS).filter(move |tag| bits & (1 << tag) != 0)
}

/// Appends the text of a tag. Returns its length.
pub(super) fn put(tag: u32, out: &mut Vec<u8>) -> usize {
    let text = format!("tag-{tag:02}");
    out.extend_from_slice(text.as_bytes());
    text.len()
}
