//! Naive counter contexts: lists of shards.
//!
//! Source: `CounterContext`, `Cells.resolveCounter`.

use std::collections::BTreeMap;

use super::choices::Choices;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Remote,
    Local,
    Global,
}

type Shards = BTreeMap<[u8; 16], (Kind, i64, i64)>;

/// Stored number of header entries, negative if local shards are to be cleared, and the shards.
fn parse(context: &[u8]) -> (i16, Shards) {
    let number = |at: usize| i16::from_be_bytes(context[at..at + 2].try_into().unwrap());
    let count = number(0);
    let header_len = 2 + 2 * usize::from(count.unsigned_abs());
    let mut kinds = BTreeMap::new();
    for at in (2..header_len).step_by(2) {
        let kind = if number(at) < 0 {
            Kind::Global
        } else {
            Kind::Local
        };
        kinds.insert(number(at) as u16 & 0x7fff, kind);
    }
    let mut shards = Shards::new();
    for (index, shard) in context[header_len..].chunks(32).enumerate() {
        let value = |at: usize| i64::from_be_bytes(shard[at..at + 8].try_into().unwrap());
        let kind = kinds.get(&(index as u16)).copied().unwrap_or(Kind::Remote);
        let id = shard[..16].try_into().unwrap();
        shards.insert(id, (kind, value(16), value(24)));
    }
    (count, shards)
}

fn serialize(shards: &Shards, negative: bool) -> Vec<u8> {
    let mut header = Vec::new();
    let mut body = Vec::new();
    let mut count = 0i16;
    for (index, (id, (kind, clock, value))) in shards.iter().enumerate() {
        let index = index as i16;
        match kind {
            Kind::Remote => {}
            Kind::Local => header.extend_from_slice(&index.to_be_bytes()),
            Kind::Global => header.extend_from_slice(&(index + i16::MIN).to_be_bytes()),
        }
        count += i16::from(*kind != Kind::Remote);
        body.extend_from_slice(id);
        body.extend_from_slice(&clock.to_be_bytes());
        body.extend_from_slice(&value.to_be_bytes());
    }
    let count = if negative { -count } else { count };
    [count.to_be_bytes().to_vec(), header, body].concat()
}

/// Returns a context as it is read: local shards that are marked become remote ones.
pub fn as_read(context: &[u8]) -> Vec<u8> {
    if context.is_empty() {
        return Vec::new();
    }
    let (count, mut shards) = parse(context);
    if count >= 0 || shards.values().all(|(kind, ..)| *kind != Kind::Local) {
        return context.to_vec();
    }
    for (kind, ..) in shards.values_mut() {
        if *kind == Kind::Local {
            *kind = Kind::Remote;
        }
    }
    serialize(&shards, false)
}

/// Adds up two contexts; returns the unchanged bytes of one that includes the other.
pub fn merge(left: &[u8], right: &[u8]) -> Vec<u8> {
    let (a, b) = (parse(left).1, parse(right).1);
    let mut merged = a.clone();
    for (id, shard) in &b {
        merged
            .entry(*id)
            .and_modify(|own| *own = merge_shards(*own, *shard))
            .or_insert(*shard);
    }
    // Two local shards are summed, and the result is new even if it is equal.
    let is_local = |shards: &Shards, id| matches!(shards.get(id), Some((Kind::Local, ..)));
    let has_sum = a.keys().any(|id| is_local(&a, id) && is_local(&b, id));
    if merged == a && !has_sum {
        left.to_vec()
    } else if merged == b && !has_sum {
        right.to_vec()
    } else {
        serialize(&merged, false)
    }
}

fn merge_shards(a: (Kind, i64, i64), b: (Kind, i64, i64)) -> (Kind, i64, i64) {
    match (a.0, b.0) {
        (Kind::Local, Kind::Local) => (Kind::Local, a.1.wrapping_add(b.1), a.2.wrapping_add(b.2)),
        // The greater kind wins; of equal ones the greater clock, then the greater count. Negative clocks,
        // which have rules of their own, are not generated.
        _ => a.max(b),
    }
}

/// Whether some shard is not global.
pub fn has_legacy_shards(context: &[u8]) -> bool {
    !context.is_empty()
        && parse(context)
            .1
            .values()
            .any(|(kind, ..)| *kind != Kind::Global)
}

/// Generates a context of up to three shards.
pub fn random_context(choices: &mut Choices) -> Vec<u8> {
    let mut shards = Shards::new();
    let only_global = choices.chance(50);
    for number in 0..3 {
        if choices.chance(50) {
            let kind = if only_global {
                Kind::Global
            } else {
                choices.pick(&[Kind::Global, Kind::Local, Kind::Remote])
            };
            let clock = choices.below(3) as i64 + 1;
            let count = choices.pick(&[1, 0, -1, i64::MAX]);
            shards.insert([0x80 ^ (number as u8 * 0x60); 16], (kind, clock, count));
        }
    }
    let has_header = shards.values().any(|(kind, ..)| *kind != Kind::Remote);
    serialize(&shards, has_header && choices.chance(15))
}
