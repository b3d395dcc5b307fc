//! The merge alone: decoded blocks in, blocks to be compressed out, all in memory.

use std::sync::Arc;

use compactor::NoObserver;
use compactor_benches::memory::MemoryOutput;
use compactor_benches::shape::{NOW_S, Shape};
use compactor_benches::table::{Key, Rows, Table, Totals, keys_for, scan, writer};
use compactor_engine::input::column_map;
use compactor_engine::job::OutsideSstables;
use compactor_engine::merge::{InputFacts, MergeInput, PartitionMerger};
use compactor_engine::read::MemorySource;
use compactor_engine::write::PartitionWriter;
use compactor_sstable::data::deletion_time::NO_DELETION_TIME;
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};

/// Uncompressed bytes of all inputs together, roughly.
const LEN: usize = 8 << 20;

type Merger = PartitionMerger<MemorySource, MemoryOutput>;
type Writer = PartitionWriter<MemoryOutput>;

/// How the inputs of a case relate, and what their merge must hold.
struct Case {
    inputs: Vec<Table>,
    expected: Totals,
}

/// Throughput: uncompressed bytes of `Data.db` of all inputs.
fn merge(c: &mut Criterion) {
    // A rewrite: nothing to merge with.
    bench(c, "rewrite/1_input", &Case::disjoint(1));
    for inputs in [2, 16] {
        // Tables of a level: one after the other.
        bench(
            c,
            &format!("disjoint/{inputs}_inputs"),
            &Case::disjoint(inputs),
        );
        // Flushes of a table that is only ever inserted into.
        bench(
            c,
            &format!("interleaved/{inputs}_inputs"),
            &Case::interleaved(inputs),
        );
        // Flushes of a table whose rows are overwritten over and over.
        bench(
            c,
            &format!("identical/{inputs}_inputs"),
            &Case::identical(inputs, Shape::KeyValue),
        );
        // The same for rows in collections.
        bench(c, &format!("identical_maps/{inputs}_inputs"), &{
            Case::identical(inputs, Shape::MapOfTen)
        });
        // Wide partitions that each flush has added rows to.
        bench(
            c,
            &format!("wide_interleaved/{inputs}_inputs"),
            &Case::wide_interleaved(inputs),
        );
    }
}

fn bench(c: &mut Criterion, name: &str, case: &Case) {
    let merged = run(case.merger(MemoryOutput::keeping()));
    assert_eq!(merged.partitions(), case.expected.partitions, "{name}");
    let (output, _) = merged.finish();
    let layout = Arc::clone(&case.inputs[0].layout);
    let data = output.kept.unwrap_or_default();
    let written = Table {
        layout,
        data,
        totals: case.expected,
    };
    assert_eq!(scan(&mut written.cursor()), case.expected, "{name}");

    let mut group = c.benchmark_group("merge");
    let bytes: usize = case.inputs.iter().map(|i| i.data.len()).sum();
    group.throughput(Throughput::Bytes(bytes as u64));
    group.bench_function(name, |b| {
        b.iter_batched(
            || case.merger(MemoryOutput::discarding()),
            run,
            BatchSize::PerIteration,
        );
    });
    group.finish();
}

fn run(merger: Merger) -> Writer {
    merger
        .run(&OutsideSstables::Unknown, &mut NoObserver)
        .expect("no damage")
        .0
}

impl Case {
    /// Inputs that share no key, each a range of tokens.
    fn disjoint(inputs: usize) -> Case {
        let keys = keys_for(Shape::KeyValue, LEN);
        let parts = keys
            .chunks(keys.len().div_ceil(inputs))
            .map(<[Key]>::to_vec);
        Case::without_common_rows(Shape::KeyValue, parts.collect())
    }

    /// Inputs that share no key, all over the same tokens.
    fn interleaved(inputs: usize) -> Case {
        let keys = keys_for(Shape::KeyValue, LEN);
        let parts = (0..inputs).map(|i| keys.iter().skip(i).step_by(inputs).cloned().collect());
        Case::without_common_rows(Shape::KeyValue, parts.collect())
    }

    fn without_common_rows(shape: Shape, parts: Vec<Vec<Key>>) -> Case {
        let rows = (0u32..)
            .zip(&parts)
            .map(|(i, keys)| Rows::new(shape, keys, i, |_| true));
        let inputs: Vec<Table> = rows.map(|rows| rows.write()).collect();
        let expected = inputs
            .iter()
            .fold(Totals::default(), |sum, i| sum.plus(i.totals));
        Case { inputs, expected }
    }

    /// Every input has every row; the last was written last.
    fn identical(inputs: usize, shape: Shape) -> Case {
        let keys = keys_for(shape, LEN / inputs);
        let rows = (0u32..)
            .take(inputs)
            .map(|i| Rows::new(shape, &keys, i, |_| true));
        let inputs: Vec<Table> = rows.map(|rows| rows.write()).collect();
        let expected = inputs
            .last()
            .map_or_else(Totals::default, |newest| newest.totals);
        Case { inputs, expected }
    }

    /// Every input has every partition, and each row is in one of them.
    fn wide_interleaved(inputs: usize) -> Case {
        let keys = keys_for(Shape::WideRows, LEN);
        let count = inputs as u64;
        let rows = (0u32..)
            .take(inputs)
            .map(|i| Rows::new(Shape::WideRows, &keys, i, |row| row % count == u64::from(i)));
        let inputs: Vec<Table> = rows.map(|rows| rows.write()).collect();
        let mut expected = inputs
            .iter()
            .fold(Totals::default(), |sum, i| sum.plus(i.totals));
        expected.partitions = keys.len() as u64;
        Case { inputs, expected }
    }

    /// A merge of the inputs that is about to begin. The first input is the oldest: its layout has
    /// the least timestamp, as the output's must.
    fn merger(&self, memory: MemoryOutput) -> Merger {
        let output = &self.inputs[0].layout;
        let inputs = self
            .inputs
            .iter()
            .map(|input| {
                let map = column_map(&input.layout, output).expect("the same columns");
                let facts = InputFacts::new(map, NO_DELETION_TIME);
                MergeInput::new(input.cursor(), facts, output)
            })
            .collect();
        PartitionMerger::new(
            inputs,
            writer(output, memory),
            Arc::clone(output),
            NOW_S,
            i64::MIN,
        )
    }
}

criterion_group!(name = benches; config = compactor_benches::criterion(); targets = merge);
criterion_main!(benches);
