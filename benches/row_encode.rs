//! Merged rows into blocks, with index blocks and statistics on the way.

use compactor_benches::memory::MemoryOutput;
use compactor_benches::shape::Shape;
use compactor_benches::table::{Key, Rows, keys_for, scan, writer};
use compactor_engine::row::MergedRow;
use compactor_sstable::data::deletion_time::DeletionTime;
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};

/// A partition as the writer takes it: clustering and row by row.
type Partition<'a> = (&'a Key, Vec<(&'a [u8], MergedRow, Vec<u8>)>);

/// Throughput: uncompressed bytes of `Data.db`.
fn row_encode(c: &mut Criterion) {
    let mut group = c.benchmark_group("row_encode");
    for shape in Shape::ALL {
        let rows = Rows::new(shape, &keys_for(shape, 1 << 20), 0, |_| true);
        let table = rows.write();
        assert_eq!(scan(&mut table.cursor()), rows.totals, "{}", shape.name());
        let partitions: Vec<Partition<'_>> = rows
            .partitions
            .iter()
            .map(|(key, rows)| {
                (
                    key,
                    rows.iter()
                        .map(|row| {
                            let (written, bytes) = row.written();
                            (&row.clustering[..], written, bytes)
                        })
                        .collect(),
                )
            })
            .collect();
        group.throughput(Throughput::Bytes(table.data.len() as u64));
        group.bench_function(format!("{}/1MiB", shape.name()), |b| {
            b.iter_batched(
                || writer(&rows.layout, MemoryOutput::discarding()),
                |mut writer| {
                    for (key, rows) in &partitions {
                        writer.start_partition(&key.bytes, key.hash, DeletionTime::LIVE);
                        for (clustering, row, bytes) in rows {
                            writer
                                .add_row(false, clustering, row, |_| &bytes[..], bytes.len())
                                .expect("memory");
                        }
                        writer.end_partition().expect("memory");
                    }
                    assert_eq!(writer.position(), table.data.len() as u64);
                    writer
                },
                BatchSize::LargeInput,
            );
        });
    }
    group.finish();
}

criterion_group!(name = benches; config = compactor_benches::criterion(); targets = row_encode);
criterion_main!(benches);
