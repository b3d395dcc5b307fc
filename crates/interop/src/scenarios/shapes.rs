//! Shapes of tables and files: keys, compression, sizes, numbers of inputs.

use super::{Scenario, list, text};
use compactor_testkit::Random;

pub(super) fn scenarios() -> Vec<Scenario> {
    let long_keys = LONG_KEYS
        .replace("$long", &"k".repeat(60_000))
        .replace("$clustering", &"c".repeat(20_000));
    let mut every = text::scenarios(SHAPES);
    every.push(text::scenario(&long_keys));
    every.extend([
        many_clusterings(),
        incompressible_chunks(),
        four_inputs(),
        twelve_inputs(),
    ]);
    let large = LARGE.replace("$zeroes", &"00".repeat(1_500_000));
    for start in [
        "large_values: values longer than a chunk and longer than 1 MiB\n\
         CREATE TABLE $t (k int, c int, v blob, PRIMARY KEY (k, c))",
        "large_values_uncompressed: the same without compression\n\
         CREATE TABLE $t (k int, c int, v blob, PRIMARY KEY (k, c)) WITH compression = {'enabled': false}",
    ] {
        every.push(text::scenario(&[start, &large].concat()));
    }
    for (rows, bytes, text) in [
        (20, 50, NO_FILTER),
        (60, 1500, COMPRESSORS),
        (100, 20, SMALL_FILTER),
        (100, 1500, CHUNKS),
        (200, 1500, UNCOMPRESSED),
    ] {
        let tables = text::scenarios(text).into_iter();
        every.extend(tables.map(|table| filler(table, rows, bytes)));
    }
    every
}

const SHAPES: &str = "
simple_kv: the common case: keys in one, the other or both inputs
CREATE TABLE $t (k int PRIMARY KEY, v text)
input
for k in 0..20: INSERT INTO $t (k, v) VALUES ($k, 'first $k') USING TIMESTAMP $(1000 + k)
input
for k in 10..30: INSERT INTO $t (k, v) VALUES ($k, 'second $k') USING TIMESTAMP $(2000 - 50 * k)

single_input: one input is a rewrite; deletions stay, expired data becomes tombstones
CREATE TABLE $t (k int, c int, v text, s text static, PRIMARY KEY (k, c))
input
for k in 0..5:
    DELETE FROM $t USING TIMESTAMP 10 WHERE k = $k
    INSERT INTO $t (k, s) VALUES ($k, 'static') USING TIMESTAMP 20
    for c in 0..5: INSERT INTO $t (k, c, v) VALUES ($k, $c, 'v') USING TIMESTAMP 20 AND TTL $(500 + 200 * c)
    DELETE FROM $t USING TIMESTAMP 30 WHERE k = $k AND c > 1 AND c < 3

many_small: enough partitions for several Summary entries and many Index pages
CREATE TABLE $t (k bigint PRIMARY KEY, v int)
input
for k in 0..700: INSERT INTO $t (k, v) VALUES ($k, $k) USING TIMESTAMP $(1000 + k)
input
for k in 500..1200: INSERT INTO $t (k, v) VALUES ($k, -$k) USING TIMESTAMP $(2000 - k)

composite_key: composite partition keys, with empty components
CREATE TABLE $t (a text, b int, d blob, c int, v text, PRIMARY KEY ((a, b, d), c))
input
for n, a in ['' 'a' 'ab' 'ключ']:
    INSERT INTO $t (a, b, d, c, v) VALUES ($a, $n, 0x, 1, 'one') USING TIMESTAMP 5
    INSERT INTO $t (a, b, d, c, v) VALUES ($a, $n, 0xff00, 1, 'two') USING TIMESTAMP 5
input
for n, a in ['' 'a' 'ab' 'ключ']:
    INSERT INTO $t (a, b, d, c, v) VALUES ($a, $n, 0x, 2, 'three') USING TIMESTAMP 6
    DELETE FROM $t USING TIMESTAMP 6 WHERE a = $a AND b = $n AND d = 0xff00

disjoint_ranges: no key in two inputs: everything is transcoded
CREATE TABLE $t (k int, c int, v text, PRIMARY KEY (k, c)) WITH CLUSTERING ORDER BY (c DESC)
input
for n in 0..50: INSERT INTO $t (k, c, v) VALUES ($(n % 10), $n, 'a$n') USING TIMESTAMP $n
input
for n in 0..50: INSERT INTO $t (k, c, v) VALUES ($(100 + n % 10), $n, 'b$n') USING TIMESTAMP $(1000000000 + n)
input
at 100
for n in 0..50: DELETE FROM $t USING TIMESTAMP 7 WHERE k = $(200 + n % 7) AND c = $n

reversed: reversed clusterings, mixed directions, with empty values
CREATE TABLE $t (k int, a text, b int, v text, PRIMARY KEY (k, a, b)) WITH CLUSTERING ORDER BY (a DESC, b ASC)
input
for a in ['' 'a' 'aa' 'b' 'ü'] for b in [-5 0 7]:
    INSERT INTO $t (k, a, b, v) VALUES (1, $a, $b, 'first') USING TIMESTAMP 10
input
for a in ['' 'aa' 'c'] for b in [-5 1 7]:
    INSERT INTO $t (k, a, b, v) VALUES (1, $a, $b, 'second') USING TIMESTAMP $(10 + b)
DELETE FROM $t USING TIMESTAMP 9 WHERE k = 1 AND a > 'a' AND a <= 'b'
DELETE FROM $t USING TIMESTAMP 11 WHERE k = 1 AND a = '' AND b > -5

counters: counters added to in each input, some deleted, some static
CREATE TABLE $t (k int, c int, s counter static, n counter, m counter, PRIMARY KEY (k, c))
input
for c in 0..40: UPDATE $t SET n = n + $c, m = m - 1 WHERE k = $(c % 4) AND c = $c
for k in 0..4: UPDATE $t SET s = s + 5 WHERE k = $k
input
for c in 0..40 step 3: UPDATE $t SET n = n + 1000 WHERE k = $(c % 4) AND c = $c
DELETE n FROM $t WHERE k = 1 AND c = 1
DELETE FROM $t WHERE k = 2 AND c = 2
input
for k in 0..4: UPDATE $t SET s = s - 1 WHERE k = $k
UPDATE $t SET m = m + 7 WHERE k = 3 AND c = 3

key_only: a table without regular columns
CREATE TABLE $t (k text PRIMARY KEY)
input
for k in ['a' 'b' 'c']: INSERT INTO $t (k) VALUES ($k) USING TIMESTAMP 5
input
INSERT INTO $t (k) VALUES ('b') USING TIMESTAMP 6
DELETE FROM $t USING TIMESTAMP 5 WHERE k = 'c'
";

const LONG_KEYS: &str = "
long_keys: a key near the 65535 byte limit and clusterings longer than a chunk
CREATE TABLE $t (k text, c text, v int, PRIMARY KEY (k, c))
input
INSERT INTO $t (k, c, v) VALUES ('$long', '$clustering', 1) USING TIMESTAMP 5
INSERT INTO $t (k, c, v) VALUES ('$long', '$clusteringa', 2) USING TIMESTAMP 5
INSERT INTO $t (k, c, v) VALUES ('short', 'c', 3) USING TIMESTAMP 5
input
INSERT INTO $t (k, c, v) VALUES ('$long', '$clustering', 4) USING TIMESTAMP 6
DELETE FROM $t USING TIMESTAMP 6 WHERE k = '$long' AND c > '$clustering'
";

const LARGE: &str = "
input
INSERT INTO $t (k, c, v) VALUES (1, 1, 0x$hex(1, 100000)) USING TIMESTAMP 1
INSERT INTO $t (k, c, v) VALUES (1, 2, 0x$zeroes) USING TIMESTAMP 1
INSERT INTO $t (k, c, v) VALUES (2, 1, 0x01) USING TIMESTAMP 1
input
INSERT INTO $t (k, c, v) VALUES (1, 1, 0x$hex(2, 1200000)) USING TIMESTAMP 2
INSERT INTO $t (k, c, v) VALUES (1, 3, 0x00) USING TIMESTAMP 2
";

const NO_FILTER: &str = "
no_bloom: bloom_filter_fp_chance 1: inputs without Filter.db
CREATE TABLE $t (k int PRIMARY KEY, v text) WITH bloom_filter_fp_chance = 1
";

const SMALL_FILTER: &str = "
tight_bloom: a low false-positive chance: many hash functions
CREATE TABLE $t (k int PRIMARY KEY, v text) WITH bloom_filter_fp_chance = 0.0001
";

const UNCOMPRESSED: &str = "
uncompressed: no CompressionInfo, CRC.db instead, over several 64 KiB checksums
CREATE TABLE $t (k int PRIMARY KEY, v text) WITH compression = {'enabled': false}
";

const CHUNKS: &str = "
chunk_4k: rows that cross chunks of other than the default length
CREATE TABLE $t (k int PRIMARY KEY, v text) WITH compression = {'class': 'LZ4Compressor', 'chunk_length_in_kb': 4}

chunk_64k: rows that cross chunks of other than the default length
CREATE TABLE $t (k int PRIMARY KEY, v text) WITH compression = {'class': 'LZ4Compressor', 'chunk_length_in_kb': 64}
";

const COMPRESSORS: &str = "
lz4_high: compressor options in CompressionInfo
CREATE TABLE $t (k int PRIMARY KEY, v text) WITH compression = {'class': 'LZ4Compressor', 'lz4_compressor_type': 'high', 'lz4_high_compressor_level': 4}

compressor_snappy: a compressor other than the default
CREATE TABLE $t (k int PRIMARY KEY, v text) WITH compression = {'class': 'SnappyCompressor'}

compressor_deflate: a compressor other than the default
CREATE TABLE $t (k int PRIMARY KEY, v text) WITH compression = {'class': 'DeflateCompressor', 'chunk_length_in_kb': 64}

compressor_zstd: a compressor other than the default
CREATE TABLE $t (k int PRIMARY KEY, v text) WITH compression = {'class': 'ZstdCompressor'}

compressor_zstd_level: a compressor other than the default
CREATE TABLE $t (k int PRIMARY KEY, v text) WITH compression = {'class': 'ZstdCompressor', 'compression_level': 9, 'chunk_length_in_kb': 4}

compressor_zstd_raw: a compressor other than the default
CREATE TABLE $t (k int PRIMARY KEY, v text) WITH compression = {'class': 'ZstdCompressor', 'min_compress_ratio': 4}

compressor_noop: a compressor other than the default
CREATE TABLE $t (k int PRIMARY KEY, v text) WITH compression = {'class': 'NoopCompressor'}
";

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

fn twelve_inputs() -> Scenario {
    let mut scenario = Scenario::new("twelve_inputs", "many inputs, with ties and overlaps")
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
