//! Tokens of partition keys: one hash per partition of every input.

use std::hint::black_box;

use compactor_sstable::partitioner::{Partitioner, murmur3};
use compactor_testkit::Random;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

const KEYS: usize = 1024;

/// Throughput: keys.
fn token(c: &mut Criterion) {
    // What Cassandra computes for the int 1.
    assert_eq!(
        murmur3::token(&1i32.to_be_bytes()),
        -4_069_959_284_402_364_209
    );
    let mut group = c.benchmark_group("murmur3");
    group.throughput(Throughput::Elements(KEYS as u64));
    // A bigint, a uuid, a composite of text and uuid, a long text.
    for len in [8, 16, 36, 200] {
        let bytes = Random::new(len as u64).bytes(len * KEYS);
        group.bench_function(format!("token/{len}_bytes"), |b| {
            b.iter(|| {
                black_box(&bytes).chunks_exact(len).fold(0i64, |sum, key| {
                    sum.wrapping_add(Partitioner::Murmur3.token(key))
                })
            });
        });
    }
    group.finish();
}

criterion_group!(name = benches; config = compactor_benches::criterion(); targets = token);
criterion_main!(benches);
