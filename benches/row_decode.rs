//! Rows out of decoded blocks: every cell of every row is looked at, none is copied.

use compactor_benches::shape::Shape;
use compactor_benches::table::{Table, scan};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};

/// Throughput: uncompressed bytes of `Data.db`.
fn row_decode(c: &mut Criterion) {
    let mut group = c.benchmark_group("row_decode");
    for shape in Shape::ALL {
        // In L2, and beyond it.
        for (parameter, len) in [("64KiB", 64 << 10), ("4MiB", 4 << 20)] {
            let table = Table::of_size(shape, len);
            assert_eq!(scan(&mut table.cursor()), table.totals, "{}", shape.name());
            assert!(table.totals.rows > 0);
            group.throughput(Throughput::Bytes(table.data.len() as u64));
            group.bench_function(format!("{}/{parameter}", shape.name()), |b| {
                b.iter_batched(
                    || table.cursor(),
                    |mut cursor| (scan(&mut cursor), cursor),
                    BatchSize::LargeInput,
                );
            });
        }
    }
    group.finish();
}

criterion_group!(name = benches; config = compactor_benches::criterion(); targets = row_decode);
criterion_main!(benches);
