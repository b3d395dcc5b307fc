//! Shapes of tables and files: keys, compression, sizes, numbers of inputs.

use super::{Scenario, T0, list};
use compactor_testkit::Random;

pub(super) fn scenarios() -> Vec<Scenario> {
    vec![
        simple_kv(),
        single_input(),
        many_small(),
        composite_key(),
        long_keys(),
        many_clusterings(),
        uncompressed(),
        chunk_length("chunk_4k", 4),
        chunk_length("chunk_64k", 64),
        large_values(),
        large_values_uncompressed(),
        incompressible_chunks(),
        no_bloom(),
        tight_bloom(),
        disjoint_ranges(),
        reversed(),
        four_inputs(),
        twelve_inputs(),
        lz4_high(),
        compressor("snappy", "'class': 'SnappyCompressor'"),
        compressor(
            "deflate",
            "'class': 'DeflateCompressor', 'chunk_length_in_kb': 64",
        ),
        compressor("zstd", "'class': 'ZstdCompressor'"),
        compressor(
            "zstd_level",
            "'class': 'ZstdCompressor', 'compression_level': 9, 'chunk_length_in_kb': 4",
        ),
        compressor(
            "zstd_raw",
            "'class': 'ZstdCompressor', 'min_compress_ratio': 4",
        ),
        compressor("noop", "'class': 'NoopCompressor'"),
        counters(),
        key_only(),
    ]
}

fn simple_kv() -> Scenario {
    Scenario::new(
        "simple_kv",
        "the common case: keys in one, the other or both inputs",
    )
    .schema("CREATE TABLE $t (k int PRIMARY KEY, v text)")
    .input(|i| {
        i.all((0..20).map(|k| {
            format!(
                "INSERT INTO $t (k, v) VALUES ({k}, 'first {k}') USING TIMESTAMP {}",
                1000 + k
            )
        }));
    })
    .input(|i| {
        i.all((10..30).map(|k| {
            format!(
                "INSERT INTO $t (k, v) VALUES ({k}, 'second {k}') USING TIMESTAMP {}",
                2000 - 50 * k
            )
        }));
    })
}

fn single_input() -> Scenario {
    Scenario::new(
        "single_input",
        "one input is a rewrite; deletions stay, expired data becomes tombstones",
    )
    .schema("CREATE TABLE $t (k int, c int, v text, s text static, PRIMARY KEY (k, c))")
    .input(|i| {
        for k in 0..5 {
            i.cql(format!("DELETE FROM $t USING TIMESTAMP 10 WHERE k = {k}"));
            i.cql(format!(
                "INSERT INTO $t (k, s) VALUES ({k}, 'static') USING TIMESTAMP 20"
            ));
            for c in 0..5 {
                i.cql(format!(
                    "INSERT INTO $t (k, c, v) VALUES ({k}, {c}, 'v') USING TIMESTAMP 20 AND TTL {}",
                    500 + 200 * c
                ));
            }
            i.cql(format!(
                "DELETE FROM $t USING TIMESTAMP 30 WHERE k = {k} AND c > 1 AND c < 3"
            ));
        }
    })
}

fn many_small() -> Scenario {
    Scenario::new(
        "many_small",
        "enough partitions for several Summary entries and many Index pages",
    )
    .schema("CREATE TABLE $t (k bigint PRIMARY KEY, v int)")
    .input(|i| {
        i.all((0..700).map(|k| {
            format!(
                "INSERT INTO $t (k, v) VALUES ({k}, {k}) USING TIMESTAMP {}",
                1000 + k
            )
        }));
    })
    .input(|i| {
        i.all((500..1200).map(|k| {
            format!(
                "INSERT INTO $t (k, v) VALUES ({k}, -{k}) USING TIMESTAMP {}",
                2000 - k
            )
        }));
    })
}

fn composite_key() -> Scenario {
    Scenario::new("composite_key", "composite partition keys, with empty components")
        .schema("CREATE TABLE $t (a text, b int, d blob, c int, v text, PRIMARY KEY ((a, b, d), c))")
        .input(|i| {
            for (n, a) in ["", "a", "ab", "ключ"].iter().enumerate() {
                i.cql(format!("INSERT INTO $t (a, b, d, c, v) VALUES ('{a}', {n}, 0x, 1, 'one') USING TIMESTAMP 5"));
                i.cql(format!("INSERT INTO $t (a, b, d, c, v) VALUES ('{a}', {n}, 0xff00, 1, 'two') USING TIMESTAMP 5"));
            }
        })
        .input(|i| {
            for (n, a) in ["", "a", "ab", "ключ"].iter().enumerate() {
                i.cql(format!("INSERT INTO $t (a, b, d, c, v) VALUES ('{a}', {n}, 0x, 2, 'three') USING TIMESTAMP 6"));
                i.cql(format!("DELETE FROM $t USING TIMESTAMP 6 WHERE a = '{a}' AND b = {n} AND d = 0xff00"));
            }
        })
}

fn long_keys() -> Scenario {
    let long = "k".repeat(60_000);
    let clustering = "c".repeat(20_000);
    Scenario::new(
        "long_keys",
        "a key near the 65535 byte limit and clusterings longer than a chunk",
    )
    .schema("CREATE TABLE $t (k text, c text, v int, PRIMARY KEY (k, c))")
    .input(|i| {
        i.cql(format!(
            "INSERT INTO $t (k, c, v) VALUES ('{long}', '{clustering}', 1) USING TIMESTAMP 5"
        ));
        i.cql(format!(
            "INSERT INTO $t (k, c, v) VALUES ('{long}', '{clustering}a', 2) USING TIMESTAMP 5"
        ));
        i.cql("INSERT INTO $t (k, c, v) VALUES ('short', 'c', 3) USING TIMESTAMP 5");
    })
    .input(|i| {
        i.cql(format!(
            "INSERT INTO $t (k, c, v) VALUES ('{long}', '{clustering}', 4) USING TIMESTAMP 6"
        ));
        i.cql(format!(
            "DELETE FROM $t USING TIMESTAMP 6 WHERE k = '{long}' AND c > '{clustering}'"
        ));
    })
}

fn many_clusterings() -> Scenario {
    let count = 40;
    let names: Vec<String> = (0..count).map(|n| format!("c{n}")).collect();
    let columns = list(names.iter().map(|name| format!("{name} text")));
    let insert = |salt: u32, ts: u32| {
        let values = list((0..count).map(|n| {
            if (n + salt).is_multiple_of(3) {
                "''".to_owned()
            } else {
                format!("'v{}'", n + salt)
            }
        }));
        format!(
            "INSERT INTO $t (k, {}, v) VALUES (1, {values}, {salt}) USING TIMESTAMP {ts}",
            names.join(", ")
        )
    };
    Scenario::new(
        "many_clusterings",
        "more than 32 clustering columns: a second block header in each clustering",
    )
    .schema(format!(
        "CREATE TABLE $t (k int, {columns}, v int, PRIMARY KEY (k, {}))",
        names.join(", ")
    ))
    .input(|i| {
        i.all((0..6).map(|salt| insert(salt, 5)));
    })
    .input(|i| {
        i.all((3..9).map(|salt| insert(salt, 4 + salt % 3)));
        i.cql("DELETE FROM $t USING TIMESTAMP 5 WHERE k = 1 AND c0 = 'v7'");
    })
}

fn filler(scenario: Scenario, rows: u32, bytes: usize) -> Scenario {
    let insert = move |k: u32, salt: u64| {
        let text = Random::new(u64::from(k) ^ salt).hex(bytes / 2);
        format!(
            "INSERT INTO $t (k, v) VALUES ({k}, '{text}') USING TIMESTAMP {}",
            100 + u64::from(k) + salt
        )
    };
    scenario
        .input(move |i| {
            i.all((0..rows).map(|k| insert(k, 0)));
        })
        .input(move |i| {
            i.all((rows / 2..rows + rows / 2).map(|k| insert(k, 1)));
        })
}

fn uncompressed() -> Scenario {
    let scenario = Scenario::new(
        "uncompressed",
        "no CompressionInfo, CRC.db instead, over several 64 KiB checksums",
    )
    .schema("CREATE TABLE $t (k int PRIMARY KEY, v text) WITH compression = {'enabled': false}");
    filler(scenario, 200, 1500)
}

fn chunk_length(name: &str, kib: u32) -> Scenario {
    let scenario = Scenario::new(name, "rows that cross chunks of other than the default length").schema(format!(
        "CREATE TABLE $t (k int PRIMARY KEY, v text) WITH compression = {{'class': 'LZ4Compressor', 'chunk_length_in_kb': {kib}}}"
    ));
    filler(scenario, 100, 1500)
}

fn large(scenario: Scenario) -> Scenario {
    scenario
        .input(|i| {
            let noise = Random::new(1).hex(100_000);
            let zeroes = "00".repeat(1_500_000);
            i.cql(format!(
                "INSERT INTO $t (k, c, v) VALUES (1, 1, 0x{noise}) USING TIMESTAMP 1"
            ));
            i.cql(format!(
                "INSERT INTO $t (k, c, v) VALUES (1, 2, 0x{zeroes}) USING TIMESTAMP 1"
            ));
            i.cql("INSERT INTO $t (k, c, v) VALUES (2, 1, 0x01) USING TIMESTAMP 1");
        })
        .input(|i| {
            let noise = Random::new(2).hex(1_200_000);
            i.cql(format!(
                "INSERT INTO $t (k, c, v) VALUES (1, 1, 0x{noise}) USING TIMESTAMP 2"
            ));
            i.cql("INSERT INTO $t (k, c, v) VALUES (1, 3, 0x00) USING TIMESTAMP 2");
        })
}

fn large_values() -> Scenario {
    large(
        Scenario::new(
            "large_values",
            "values longer than a chunk and longer than 1 MiB",
        )
        .schema("CREATE TABLE $t (k int, c int, v blob, PRIMARY KEY (k, c))"),
    )
}

fn large_values_uncompressed() -> Scenario {
    large(
        Scenario::new("large_values_uncompressed", "the same without compression")
            .schema("CREATE TABLE $t (k int, c int, v blob, PRIMARY KEY (k, c)) WITH compression = {'enabled': false}"),
    )
}

fn incompressible_chunks() -> Scenario {
    Scenario::new(
        "incompressible_chunks",
        "min_compress_ratio stores chunks raw where they do not compress",
    )
    .schema(
        "CREATE TABLE $t (k int PRIMARY KEY, v blob) WITH compression = \
             {'class': 'LZ4Compressor', 'chunk_length_in_kb': 4, 'min_compress_ratio': 1.1}",
    )
    .input(|i| {
        let mut rng = Random::new(3);
        i.all((0..20).map(|k| {
            let hex = if k % 2 == 0 {
                rng.hex(3000)
            } else {
                "ab".repeat(3000)
            };
            format!("INSERT INTO $t (k, v) VALUES ({k}, 0x{hex}) USING TIMESTAMP 1")
        }));
    })
    .input(|i| {
        let mut rng = Random::new(4);
        i.all((10..30).map(|k| {
            format!(
                "INSERT INTO $t (k, v) VALUES ({k}, 0x{}) USING TIMESTAMP 2",
                rng.hex(2000)
            )
        }));
    })
}

fn no_bloom() -> Scenario {
    let scenario = Scenario::new(
        "no_bloom",
        "bloom_filter_fp_chance 1: inputs without Filter.db",
    )
    .schema("CREATE TABLE $t (k int PRIMARY KEY, v text) WITH bloom_filter_fp_chance = 1");
    filler(scenario, 20, 50)
}

fn tight_bloom() -> Scenario {
    let scenario = Scenario::new(
        "tight_bloom",
        "a low false-positive chance: many hash functions",
    )
    .schema("CREATE TABLE $t (k int PRIMARY KEY, v text) WITH bloom_filter_fp_chance = 0.0001");
    filler(scenario, 100, 20)
}

fn disjoint_ranges() -> Scenario {
    Scenario::new("disjoint_ranges", "no key in two inputs: everything is transcoded")
        .schema("CREATE TABLE $t (k int, c int, v text, PRIMARY KEY (k, c)) WITH CLUSTERING ORDER BY (c DESC)")
        .input(|i| {
            i.all((0..50).map(|n| format!("INSERT INTO $t (k, c, v) VALUES ({}, {n}, 'a{n}') USING TIMESTAMP {n}", n % 10)));
        })
        .input(|i| {
            i.all((0..50).map(|n| {
                format!("INSERT INTO $t (k, c, v) VALUES ({}, {n}, 'b{n}') USING TIMESTAMP {}", 100 + n % 10, 1_000_000_000 + n)
            }));
        })
        .input(|i| {
            i.at(T0 + 100).all((0..50).map(|n| format!("DELETE FROM $t USING TIMESTAMP 7 WHERE k = {} AND c = {n}", 200 + n % 7)));
        })
}

fn reversed() -> Scenario {
    Scenario::new("reversed", "reversed clusterings, mixed directions, with empty values")
        .schema(
            "CREATE TABLE $t (k int, a text, b int, v text, PRIMARY KEY (k, a, b)) WITH CLUSTERING ORDER BY (a DESC, b ASC)",
        )
        .input(|i| {
            for a in ["", "a", "aa", "b", "ü"] {
                for b in [-5, 0, 7] {
                    i.cql(format!("INSERT INTO $t (k, a, b, v) VALUES (1, '{a}', {b}, 'first') USING TIMESTAMP 10"));
                }
            }
        })
        .input(|i| {
            for a in ["", "aa", "c"] {
                for b in [-5, 1, 7] {
                    i.cql(format!("INSERT INTO $t (k, a, b, v) VALUES (1, '{a}', {b}, 'second') USING TIMESTAMP {}", 10 + b));
                }
            }
            i.cql("DELETE FROM $t USING TIMESTAMP 9 WHERE k = 1 AND a > 'a' AND a <= 'b'");
            i.cql("DELETE FROM $t USING TIMESTAMP 11 WHERE k = 1 AND a = '' AND b > -5");
        })
}

fn four_inputs() -> Scenario {
    let mut scenario = Scenario::new(
        "four_inputs",
        "four inputs, each key in one to four of them",
    )
    .schema("CREATE TABLE $t (k int, c int, a int, b int, PRIMARY KEY (k, c))");
    for n in 0..4_i64 {
        scenario = scenario.input(|i| {
            for k in 0..16_i64 {
                if k & (1 << n) != 0 {
                    for c in 0..4_i64 {
                        let column = if (c + n) % 2 == 0 { "a" } else { "b" };
                        i.cql(format!(
                            "INSERT INTO $t (k, c, {column}) VALUES ({k}, {c}, {n}) USING TIMESTAMP {}",
                            100 + (n * 7 + c * 3 + k) % 5
                        ));
                    }
                }
            }
        });
    }
    scenario
}

fn key_only() -> Scenario {
    Scenario::new("key_only", "a table without regular columns")
        .schema("CREATE TABLE $t (k text PRIMARY KEY)")
        .input(|i| {
            i.all(
                ["a", "b", "c"]
                    .map(|k| format!("INSERT INTO $t (k) VALUES ('{k}') USING TIMESTAMP 5")),
            );
        })
        .input(|i| {
            i.cql("INSERT INTO $t (k) VALUES ('b') USING TIMESTAMP 6");
            i.cql("DELETE FROM $t USING TIMESTAMP 5 WHERE k = 'c'");
        })
}

fn twelve_inputs() -> Scenario {
    let mut scenario = Scenario::new(
        "twelve_inputs",
        "more inputs than a hand has fingers, all ties and overlaps",
    )
    .schema("CREATE TABLE $t (k int, c int, v int, w int, PRIMARY KEY (k, c))");
    for n in 0..12_i64 {
        scenario = scenario.input(|i| {
            for c in 0..6_i64 {
                let column = if (c * n) % 3 == 0 { "v" } else { "w" };
                i.cql(format!(
                    "INSERT INTO $t (k, c, {column}) VALUES ({}, {c}, {n}) USING TIMESTAMP {}",
                    (c + n) % 4,
                    100 + (n * 5 + c) % 4
                ));
            }
            i.cql(format!(
                "DELETE FROM $t USING TIMESTAMP {} WHERE k = {} AND c >= {} AND c < {}",
                99 + n % 4,
                n % 4,
                n % 5,
                n % 5 + 2
            ));
        });
    }
    scenario
}

fn lz4_high() -> Scenario {
    let scenario = Scenario::new("lz4_high", "compressor options in CompressionInfo").schema(
        "CREATE TABLE $t (k int PRIMARY KEY, v text) WITH compression = \
         {'class': 'LZ4Compressor', 'lz4_compressor_type': 'high', 'lz4_high_compressor_level': 4}",
    );
    filler(scenario, 60, 1500)
}

fn compressor(name: &str, options: &str) -> Scenario {
    let scenario = Scenario::new(
        format!("compressor_{name}"),
        "a compressor other than the default",
    )
    .schema(format!(
        "CREATE TABLE $t (k int PRIMARY KEY, v text) WITH compression = {{{options}}}"
    ));
    filler(scenario, 60, 1500)
}

fn counters() -> Scenario {
    Scenario::new(
        "counters",
        "counters added to in each input, some deleted, some static",
    )
    .schema(
        "CREATE TABLE $t (k int, c int, s counter static, n counter, m counter, \
             PRIMARY KEY (k, c))",
    )
    .input(|i| {
        i.all((0..40).map(|c| {
            format!(
                "UPDATE $t SET n = n + {c}, m = m - 1 WHERE k = {} AND c = {c}",
                c % 4
            )
        }));
        i.all((0..4).map(|k| format!("UPDATE $t SET s = s + 5 WHERE k = {k}")));
    })
    .input(|i| {
        i.all(
            (0..40)
                .filter(|c| c % 3 == 0)
                .map(|c| format!("UPDATE $t SET n = n + 1000 WHERE k = {} AND c = {c}", c % 4)),
        );
        i.cql("DELETE n FROM $t WHERE k = 1 AND c = 1");
        i.cql("DELETE FROM $t WHERE k = 2 AND c = 2");
    })
    .input(|i| {
        i.all((0..4).map(|k| format!("UPDATE $t SET s = s - 1 WHERE k = {k}")));
        i.cql("UPDATE $t SET m = m + 7 WHERE k = 3 AND c = 3");
    })
}
