//! Our size-tiered strategy compared with Cassandra's: buckets, and the bucket that is compacted next.

use compactor_strategy::context::Node;
use compactor_strategy::options::Thresholds;
use compactor_strategy::random::TieBreak;
use compactor_strategy::size_tiered::{BucketOptions, SizeTieredOptions};
use compactor_strategy::sstable::{Sstable, SstableId};
use compactor_strategy::{CompactionParams, CompactionStrategyManager};
use interop::cases::Case;
use interop::scenarios::Scenario;
use interop::{Mode, strategy};

use crate::support::server;

const LISTS: usize = 3000;

fn bucket_options(list: &strategy::SizeList) -> BucketOptions {
    BucketOptions {
        low: list.low,
        high: list.high,
        min_sstable_size: list.min,
    }
}

#[test]
fn buckets_match_cassandra() {
    let Some(mut cassandra) = server(Mode::Pa) else {
        return;
    };
    let lists = strategy::random_lists(7871, LISTS);
    let theirs = strategy::buckets(&mut cassandra, &lists).expect("Cassandra makes buckets");
    let mut several = 0;
    for (number, (list, theirs)) in lists.iter().zip(&theirs).enumerate() {
        let ours = bucket_options(list).buckets(&list.sizes);
        assert_eq!(&ours, theirs, "list {number}: {list:?}");
        several += usize::from(ours.len() > 12);
    }
    println!("{LISTS} lists, {several} of them with more than 12 buckets");
    assert!(
        several > LISTS / 20,
        "only {several} lists have more than 12 buckets"
    );
}

#[test]
fn next_compaction_matches_cassandra() {
    let Some(mut cassandra) = server(Mode::Pa) else {
        return;
    };
    let mut scenario = Scenario::new("size_tiered_next", "SSTables of many sizes")
        .schema("CREATE TABLE $t (k int PRIMARY KEY, v text)");
    let lens = [
        3000, 20, 9000, 3100, 25, 400, 8000, 3000, 420, 30, 9100, 390, 3050, 20, 410,
    ];
    for (n, len) in lens.iter().enumerate() {
        scenario = scenario.input(|i| {
            // Text that compresses badly, so that the file is about as long as the text.
            let text: String = (0..*len)
                .map(|b: usize| char::from(b'0' + ((b * b * 7 + b / 3 + n) % 43) as u8))
                .filter(|c| *c != '\'')
                .collect();
            i.cql(format!("INSERT INTO $t (k, v) VALUES ({n}, '{text}')"));
        });
    }
    let place = tempfile::tempdir().expect("a directory");
    let case = Case::prepare(&mut cassandra, &scenario, place.path()).expect("inputs");
    let mut found = 0;
    for (min, max) in [(2, 2), (2, 32), (3, 4), (4, 32), (15, 15), (16, 32)] {
        for (low, high, min_size) in [
            (0.5, 1.5, 0),
            (0.9, 1.1, 0),
            (0.5, 1.5, 600),
            (0.5, 1.5, 1 << 20),
        ] {
            let list = strategy::SizeList {
                sizes: Vec::new(),
                low,
                high,
                min: min_size,
            };
            let theirs =
                strategy::next(&mut cassandra, &case.table, &case.inputs, &list, (min, max))
                    .expect("Cassandra chooses");
            let sstable = |(place, bytes): (usize, &strategy::Bytes)| Sstable {
                id: SstableId(place as u64),
                data_bytes: bytes.data,
                bytes_on_disk: bytes.all,
                ..Sstable::default()
            };
            let options = SizeTieredOptions {
                thresholds: Thresholds { min, max },
                buckets: bucket_options(&list),
                ..SizeTieredOptions::default()
            };
            let mut ours = CompactionStrategyManager::load(
                CompactionParams::size_tiered(options),
                Node::default(),
                TieBreak::First,
                theirs.sizes.iter().enumerate().map(sstable),
                0,
            );
            let next = ours
                .next_task(0)
                .map(|task| task.inputs)
                .unwrap_or_default();
            let next: Vec<usize> = next.iter().map(|id| id.0 as usize).collect();
            assert_eq!(
                next, theirs.next,
                "{min}..{max}, {list:?}, {:?}",
                theirs.sizes
            );
            found += usize::from(!theirs.next.is_empty());
        }
    }
    assert!(found > 10, "only {found} choices were not empty");
}
