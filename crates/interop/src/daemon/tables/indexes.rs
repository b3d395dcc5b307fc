//! Indexes and materialized views, which a node makes anew from what it is given.

use super::{Table, text, time};

pub(super) fn tables() -> Vec<Table> {
    vec![secondary(), sai(), sasi(), view()]
}

/// Indexes whose entries are in a hidden table.
fn secondary() -> Table {
    let create = "CREATE TABLE $t (k int, c int, v text, s int STATIC, m map<text, int>, PRIMARY KEY (k, c))";
    Table::new("secondary", create, |round, writes| {
        for n in 0..60 {
            let (key, time) = (n % 10, time(round, n));
            writes.push(format!(
                "INSERT INTO $t (k, c, v, s, m) VALUES ({key}, {}, 'v{}', {}, {{'a': {round}, 'n': {n}}}) USING TIMESTAMP {time}",
                n / 10 + round,
                (n + round) % 4,
                key % 3
            ));
        }
        writes.push(format!(
            "DELETE FROM $t USING TIMESTAMP {} WHERE k = {round} AND c = {round}",
            time(round, 100)
        ));
    })
    .index("rig_2i_v", "v")
    .index("rig_2i_c", "c")
    .index("rig_2i_s", "s")
    .index("rig_2i_m", "KEYS(m)")
    .index("rig_2i_e", "ENTRIES(m)")
    .query("SELECT k, c FROM $t WHERE v = 'v1'")
    .query("SELECT k, c FROM $t WHERE c = 3")
    .query("SELECT k, c FROM $t WHERE s = 2")
    .query("SELECT k, c FROM $t WHERE m CONTAINS KEY 'n'")
    .query("SELECT k, c FROM $t WHERE m['a'] = 2")
}

fn sai() -> Table {
    let create = "CREATE TABLE $t (k int, c int, v text, n int, tags set<text>, e vector<float, 3>, PRIMARY KEY (k, c))";
    let mut table = Table::new("sai", create, |round, writes| {
        for n in 0..60 {
            let time = time(round, n);
            writes.push(format!(
                "INSERT INTO $t (k, c, v, n, tags, e) VALUES ({}, {}, 'V{}', {}, {{'t{}', 'all'}}, [0.{n:02}, 0.{round}, 1])
                USING TIMESTAMP {time}",
                n % 10,
                n / 10 + round,
                (n + round) % 4,
                n * 3 + round,
                n % 5
            ));
        }
        writes.push(format!(
            "DELETE FROM $t USING TIMESTAMP {} WHERE k = {round} AND c = {round}",
            time(round, 100)
        ));
    })
    .since(5);
    for (name, column, options) in [
        ("v", "v", "WITH OPTIONS = {'case_sensitive': 'false'}"),
        ("n", "n", ""),
        ("tags", "tags", ""),
        (
            "e",
            "e",
            "WITH OPTIONS = {'similarity_function': 'euclidean'}",
        ),
    ] {
        table = table.after(&format!(
            "CREATE INDEX rig_sai_{name} ON $t ({column}) USING 'sai' {options}"
        ));
    }
    table
        .query("SELECT k, c, v FROM $t WHERE v = 'v2'")
        .query("SELECT k, c, n FROM $t WHERE n > 30 AND n <= 90")
        .query("SELECT k, c FROM $t WHERE tags CONTAINS 't3' AND n < 100")
        // Which are the nearest is approximate, and depends on how the graph was built: all of them are not.
        .query("SELECT k, c FROM $t ORDER BY e ANN OF [0.11, 0.2, 1] LIMIT 1000")
}

fn sasi() -> Table {
    let create = "CREATE TABLE $t (k int PRIMARY KEY, v text, n int)";
    Table::rows("sasi", create, 80, |round, n| {
            format!(
                "INSERT INTO $t (k, v, n) VALUES ({}, '{}', {}) USING TIMESTAMP {}",
                n + round * 40,
                text(n + round, 24),
                n + round,
                time(round, n)
            )
    })
    .after(
        "CREATE CUSTOM INDEX rig_sasi_v ON $t (v) USING 'org.apache.cassandra.index.sasi.SASIIndex'
        WITH OPTIONS = {'mode': 'CONTAINS'}",
    )
    .after("CREATE CUSTOM INDEX rig_sasi_n ON $t (n) USING 'org.apache.cassandra.index.sasi.SASIIndex'")
    .query("SELECT k FROM $t WHERE v LIKE '%merge%'")
    .query("SELECT k FROM $t WHERE n > 20 AND n < 40 ALLOW FILTERING")
}

fn view() -> Table {
    let create = "CREATE TABLE $t (k int, c int, v int, w text, PRIMARY KEY (k, c))";
    Table::new("base", create, |round, writes| {
        for n in 0..60 {
            let time = time(round, n);
            writes.push(format!(
                "INSERT INTO $t (k, c, v, w) VALUES ({}, {}, {}, '{}') USING TIMESTAMP {time}",
                n % 10,
                n / 10,
                (n + round) % 7,
                text(n + round, 30)
            ));
        }
        writes.push(format!(
            "DELETE FROM $t USING TIMESTAMP {} WHERE k = {round} AND c = {round}",
            time(round, 100)
        ));
        // The row of the view expires, and `w` in it does not: once its liveness is purged, the rest of it is too.
        for n in 0..5 {
            writes.push(format!(
                "INSERT INTO $t (k, c, w) VALUES ({n}, {}, 'stays') USING TIMESTAMP {}",
                100 + round,
                time(round, 200 + n)
            ));
            writes.push(format!(
                "UPDATE $t USING TIMESTAMP {} AND TTL 1 SET v = {n} WHERE k = {n} AND c = {}",
                time(round, 300 + n),
                100 + round
            ));
        }
    })
    .view(
        "base_by_v",
        "CREATE MATERIALIZED VIEW $ks.base_by_v AS SELECT * FROM $t WHERE v IS NOT NULL AND k IS NOT NULL
        AND c IS NOT NULL PRIMARY KEY (v, k, c) WITH gc_grace_seconds = 1",
    )
    .query("SELECT * FROM $ks.base_by_v WHERE v = 3")
}
