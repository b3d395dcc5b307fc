//! Counter contexts in the layout of `CounterContext`: a header that marks global and local shards, then the shards.

use compactor_testkit::Random;

/// Kind of a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Global,
    Local,
    Remote,
}

/// A context of one to four shards, mostly global ones.
pub(super) fn context(rng: &mut Random) -> Vec<u8> {
    let legacy = rng.one_in(4);
    // Local shards that came from another node, to be cleared when they are read.
    let to_be_cleared = legacy && rng.one_in(6);
    let mut header = Vec::new();
    let mut marked: i16 = 0;
    let mut shards = Vec::new();
    for (index, id) in (0_i16..).zip(ids(rng)) {
        let kind = if legacy {
            *rng.pick(&[Kind::Global, Kind::Local, Kind::Remote])
        } else {
            Kind::Global
        };
        match kind {
            Kind::Global => header.extend((index + i16::MIN).to_be_bytes()),
            Kind::Local => header.extend(index.to_be_bytes()),
            Kind::Remote => {}
        }
        marked += i16::from(kind != Kind::Remote);
        let mut shard = [0; 16];
        shard[0] = 0x10;
        shard[15] = id;
        shards.extend(shard);
        // Never zero: between a clock of zero and another one, Cassandra's choice depends on their order.
        let clock = *rng.pick(&[1, 2, 3, i64::MAX / 4]);
        shards.extend(clock.to_be_bytes());
        // Disjoint values: between two contexts that differ only in the mark, Cassandra's choice depends on their
        // order, too.
        let count = if to_be_cleared {
            *rng.pick(&[-4, 2, 8])
        } else {
            *rng.pick(&[-5, 0, 1, 7, i64::MAX])
        };
        shards.extend(count.to_be_bytes());
    }
    if to_be_cleared {
        marked = -marked;
    }
    let mut context = marked.to_be_bytes().to_vec();
    context.extend(header);
    context.extend(shards);
    context
}

/// Some of four counter ids, in order.
fn ids(rng: &mut Random) -> Vec<u8> {
    let mut ids: Vec<u8> = (1..=4).filter(|_| rng.one_in(2)).collect();
    if ids.is_empty() {
        ids.push(2);
    }
    ids
}
