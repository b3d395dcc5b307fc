//! Partitions of several column index blocks (64 KiB each), so that outputs have promoted indexes.

use super::{Input, Scenario, T0};
use compactor_testkit::Random;

pub(super) fn scenarios() -> Vec<Scenario> {
    vec![
        wide(),
        wide_reversed(),
        wide_ranges(),
        wide_one_block_and_a_bit(),
        wide_prefix_ranges(),
        wide_static_and_deletion(),
        wide_many_rows(),
        wide_uncompressed(),
        wide_purge(),
    ]
}

const TABLE: &str = "CREATE TABLE $t (k int, c int, v text, PRIMARY KEY (k, c))";

fn rows(i: &mut Input, k: i32, range: impl Iterator<Item = i32>, bytes: usize, ts: i32) {
    for c in range {
        let seed = u64::from(c.unsigned_abs()) * 31 + u64::from(k.unsigned_abs());
        let text = Random::new(seed).hex(bytes / 2);
        i.cql(format!(
            "INSERT INTO $t (k, c, v) VALUES ({k}, {c}, '{text}') USING TIMESTAMP {ts}"
        ));
    }
}

fn wide() -> Scenario {
    Scenario::new(
        "wide",
        "two wide partitions and small ones between, rows interleaved",
    )
    .schema(TABLE)
    .input(|i| {
        rows(i, 1, (0..400).step_by(2), 1500, 10);
        rows(i, 2, 0..100, 1500, 10);
        rows(i, 3, 0..2, 10, 10);
    })
    .input(|i| {
        rows(i, 1, (1..400).step_by(2), 1500, 11);
        rows(i, 2, 50..150, 1500, 11);
        rows(i, 4, 0..2, 10, 11);
    })
}

fn wide_reversed() -> Scenario {
    Scenario::new("wide_reversed", "a wide partition with descending clusterings and row deletions")
        .schema("CREATE TABLE $t (k int, c int, v text, PRIMARY KEY (k, c)) WITH CLUSTERING ORDER BY (c DESC)")
        .input(|i| rows(i, 1, 0..200, 1500, 10))
        .input(|i| {
            rows(i, 1, 150..300, 1500, 11);
            i.all((0..300).step_by(7).map(|c| format!("DELETE FROM $t USING TIMESTAMP 12 WHERE k = 1 AND c = {c}")));
        })
}

fn wide_ranges() -> Scenario {
    Scenario::new(
        "wide_ranges",
        "range tombstones open across block boundaries, nested and touching there",
    )
    .schema(TABLE)
    .input(|i| rows(i, 1, 0..300, 1500, 10))
    .input(|i| {
        i.cql("DELETE FROM $t USING TIMESTAMP 5 WHERE k = 1 AND c >= 10 AND c < 250");
        i.cql("DELETE FROM $t USING TIMESTAMP 7 WHERE k = 1 AND c > 40 AND c <= 200");
        i.cql("DELETE FROM $t USING TIMESTAMP 15 WHERE k = 1 AND c > 100 AND c < 110");
    })
    .input(|i| {
        i.at(T0 + 9)
            .cql("DELETE FROM $t USING TIMESTAMP 6 WHERE k = 1 AND c >= 200");
        i.cql("DELETE FROM $t USING TIMESTAMP 8 WHERE k = 1 AND c < 42");
        rows(i, 1, 290..400, 1500, 12);
    })
}

fn wide_one_block_and_a_bit() -> Scenario {
    Scenario::new(
        "wide_block_edges",
        "one block exactly, one and a little, almost two: where an index appears",
    )
    .schema(TABLE)
    .input(|i| {
        for (k, count) in [
            (1, 42),
            (2, 43),
            (3, 44),
            (4, 45),
            (5, 85),
            (6, 86),
            (7, 87),
            (8, 88),
        ] {
            rows(i, k, 0..count, 1500, 10);
        }
    })
    .input(|i| {
        rows(i, 1, 0..1, 1500, 11);
        rows(i, 9, 0..1, 80_000, 11);
        rows(i, 10, 0..2, 70_000, 11);
    })
}

fn wide_prefix_ranges() -> Scenario {
    Scenario::new("wide_prefix_ranges", "promoted index over two-column clusterings with prefix bounds")
        .schema(
            "CREATE TABLE $t (k text, a text, b int, v text, PRIMARY KEY (k, a, b)) WITH CLUSTERING ORDER BY (a DESC, b ASC)",
        )
        .input(|i| {
            for a in 0..10 {
                for b in 0..20 {
                    let text = Random::new(a * 100 + b).hex(700);
                    i.cql(format!("INSERT INTO $t (k, a, b, v) VALUES ('key', 'a{a}', {b}, '{text}') USING TIMESTAMP 10"));
                }
            }
        })
        .input(|i| {
            i.cql("DELETE FROM $t USING TIMESTAMP 9 WHERE k = 'key' AND a > 'a1' AND a <= 'a7'");
            i.cql("DELETE FROM $t USING TIMESTAMP 11 WHERE k = 'key' AND a = 'a5' AND b > 5 AND b < 15");
            i.cql("DELETE FROM $t USING TIMESTAMP 8 WHERE k = 'key' AND a = 'a9'");
            for b in 0..20 {
                let text = Random::new(b).hex(700);
                i.cql(format!("INSERT INTO $t (k, a, b, v) VALUES ('key', 'a55', {b}, '{text}') USING TIMESTAMP 12"));
            }
        })
}

fn wide_static_and_deletion() -> Scenario {
    Scenario::new(
        "wide_static",
        "wide partition with partition deletion and static row before the first block",
    )
    .schema("CREATE TABLE $t (k int, c int, s text static, v text, PRIMARY KEY (k, c))")
    .input(|i| {
        let text = Random::new(9).hex(3000);
        i.cql(format!(
            "INSERT INTO $t (k, s) VALUES (1, '{text}') USING TIMESTAMP 10"
        ));
        rows(i, 1, 0..150, 1500, 10);
    })
    .input(|i| {
        i.cql("DELETE FROM $t USING TIMESTAMP 5 WHERE k = 1");
        rows(i, 1, 100..200, 1500, 11);
    })
}

fn wide_many_rows() -> Scenario {
    Scenario::new("wide_many_rows", "thousands of small rows in one partition")
        .schema("CREATE TABLE $t (k int, c bigint, a int, b int, PRIMARY KEY (k, c))")
        .input(|i| {
            i.all((0..4000).map(|c| {
                format!(
                    "INSERT INTO $t (k, c, a, b) VALUES (1, {c}, 1, 2) USING TIMESTAMP {}",
                    100 + c
                )
            }));
        })
        .input(|i| {
            i.all((2000..6000).step_by(2).map(|c| {
                format!(
                    "UPDATE $t USING TIMESTAMP {} SET b = 3 WHERE k = 1 AND c = {c}",
                    90 + c
                )
            }));
            i.cql("DELETE FROM $t USING TIMESTAMP 3500 WHERE k = 1 AND c > 2500 AND c < 3500");
        })
}

fn wide_uncompressed() -> Scenario {
    Scenario::new("wide_uncompressed", "wide partitions without compression")
        .schema("CREATE TABLE $t (k int, c int, v text, PRIMARY KEY (k, c)) WITH compression = {'enabled': false}")
        .input(|i| rows(i, 1, 0..150, 1500, 10))
        .input(|i| {
            rows(i, 1, 100..200, 1500, 9);
            i.cql("DELETE FROM $t USING TIMESTAMP 10 WHERE k = 1 AND c > 20 AND c < 160");
        })
}

fn wide_purge() -> Scenario {
    Scenario::new(
        "wide_purge",
        "deletions purged out of a wide partition; it shrinks below two blocks or vanishes",
    )
    .schema(TABLE)
    .input(|i| {
        rows(i, 1, 0..200, 1500, 10);
        rows(i, 2, 0..200, 1500, 10);
        rows(i, 3, 0..100, 1500, 10);
    })
    .input(|i| {
        i.cql("DELETE FROM $t USING TIMESTAMP 11 WHERE k = 1 AND c > 20");
        i.cql("DELETE FROM $t USING TIMESTAMP 11 WHERE k = 2");
        i.cql("DELETE FROM $t USING TIMESTAMP 9 WHERE k = 3 AND c > 20 AND c < 60");
    })
    .purge_all()
}
