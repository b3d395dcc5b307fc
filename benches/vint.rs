//! Cassandra's variable-length integers, in the sizes that Data.db has them.

use std::hint::black_box;

use compactor_sstable::vint;
use compactor_testkit::Random;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

const COUNT: usize = 4096;

/// Values of up to `bits` bits, the shorter ones as frequent as the longer ones.
fn values(bits: u32) -> Vec<u64> {
    let mut random = Random::new(u64::from(bits));
    (0..COUNT)
        .map(|_| {
            let len = random.number() % u64::from(bits) + 1;
            random.number() >> (64 - len)
        })
        .collect()
}

/// Throughput: integers.
fn vint(c: &mut Criterion) {
    for (case, bits) in [("1_byte", 7), ("up_to_3_bytes", 21), ("up_to_9_bytes", 64)] {
        let values = values(bits);
        let sum = values
            .iter()
            .fold(0u64, |sum, value| sum.wrapping_add(*value));
        let mut encoded = Vec::new();
        write_all(&mut encoded, &values);
        assert_eq!(
            encoded.len(),
            values.iter().map(|v| vint::unsigned_len(*v)).sum::<usize>()
        );
        assert_eq!(read_all(&encoded), (COUNT, sum));

        let mut group = c.benchmark_group("vint");
        group.throughput(Throughput::Elements(COUNT as u64));
        group.bench_function(format!("read/{case}"), |b| {
            b.iter(|| read_all(black_box(&encoded)))
        });
        let mut out = Vec::with_capacity(encoded.len() + vint::MAX_LEN);
        group.bench_function(format!("write/{case}"), |b| {
            b.iter(|| {
                out.clear();
                write_all(&mut out, black_box(&values));
                out.len()
            });
        });
        group.finish();
    }
}

fn write_all(out: &mut Vec<u8>, values: &[u64]) {
    for value in values {
        vint::write_unsigned(out, *value);
    }
}

/// Number and sum of the integers in `bytes`.
fn read_all(bytes: &[u8]) -> (usize, u64) {
    let (mut pos, mut count, mut sum) = (0, 0, 0u64);
    while pos < bytes.len() {
        let Some(value) = vint::read_unsigned(bytes, &mut pos) else {
            break;
        };
        sum = sum.wrapping_add(value);
        count += 1;
    }
    (count, sum)
}

criterion_group!(name = benches; config = compactor_benches::criterion(); targets = vint);
criterion_main!(benches);
