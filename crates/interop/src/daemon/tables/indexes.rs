//! Indexes and materialized views, which a node rebuilds.

use super::Table;

pub(super) fn tables() -> Vec<Table> {
    super::from_text(INDEXES)
}

const INDEXES: &str = "
# Indexes whose entries are in a hidden table.
secondary
CREATE TABLE $t (k int, c int, v text, s int STATIC, m map<text, int>, PRIMARY KEY (k, c))
index rig_2i_v v
index rig_2i_c c
index rig_2i_s s
index rig_2i_m KEYS(m)
index rig_2i_e ENTRIES(m)
query SELECT k, c FROM $t WHERE v = 'v1'
query SELECT k, c FROM $t WHERE c = 3
query SELECT k, c FROM $t WHERE s = 2
query SELECT k, c FROM $t WHERE m CONTAINS KEY 'n'
query SELECT k, c FROM $t WHERE m['a'] = 2
rounds 0 1 2 3
for n in 0..60:
    INSERT INTO $t (k, c, v, s, m) VALUES ($(n % 10), $(n / 10 + round), 'v$((n + round) % 4)', $(n % 10 % 3), {'a': $round, 'n': $n}) USING TIMESTAMP $(time + n)
DELETE FROM $t USING TIMESTAMP $(time + 100) WHERE k = $round AND c = $round

sai
since 5
CREATE TABLE $t (k int, c int, v text, n int, tags set<text>, e vector<float, 3>, PRIMARY KEY (k, c))
CREATE INDEX rig_sai_v ON $t (v) USING 'sai' WITH OPTIONS = {'case_sensitive': 'false'}
CREATE INDEX rig_sai_n ON $t (n) USING 'sai'
CREATE INDEX rig_sai_tags ON $t (tags) USING 'sai'
CREATE INDEX rig_sai_e ON $t (e) USING 'sai' WITH OPTIONS = {'similarity_function': 'euclidean'}
query SELECT k, c, v FROM $t WHERE v = 'v2'
query SELECT k, c, n FROM $t WHERE n > 30 AND n <= 90
query SELECT k, c FROM $t WHERE tags CONTAINS 't3' AND n < 100
# The nearest rows are approximate, and depend on how the graph was built; the set of all rows does not.
query SELECT k, c FROM $t ORDER BY e ANN OF [0.11, 0.2, 1] LIMIT 1000
rounds 0 1 2 3
for m in 0..6 for i in 0..10:
    let n = $(m * 10 + i)
    INSERT INTO $t (k, c, v, n, tags, e) VALUES ($i, $(m + round), 'V$((n + round) % 4)', $(n * 3 + round), {'t$(n % 5)', 'all'}, [0.$m$i, 0.$round, 1]) USING TIMESTAMP $(time + n)
DELETE FROM $t USING TIMESTAMP $(time + 100) WHERE k = $round AND c = $round

sasi
CREATE TABLE $t (k int PRIMARY KEY, v text, n int)
CREATE CUSTOM INDEX rig_sasi_v ON $t (v) USING 'org.apache.cassandra.index.sasi.SASIIndex' WITH OPTIONS = {'mode': 'CONTAINS'}
CREATE CUSTOM INDEX rig_sasi_n ON $t (n) USING 'org.apache.cassandra.index.sasi.SASIIndex'
query SELECT k FROM $t WHERE v LIKE '%merge%'
query SELECT k FROM $t WHERE n > 20 AND n < 40 ALLOW FILTERING
rounds 0 1 2 3
for n in 0..80:
    INSERT INTO $t (k, v, n) VALUES ($(n + round * 40), '$words(n + round, 24)', $(n + round)) USING TIMESTAMP $(time + n)

base
CREATE TABLE $t (k int, c int, v int, w text, PRIMARY KEY (k, c))
view base_by_v CREATE MATERIALIZED VIEW $ks.base_by_v AS SELECT * FROM $t WHERE v IS NOT NULL AND k IS NOT NULL AND c IS NOT NULL PRIMARY KEY (v, k, c) WITH gc_grace_seconds = 1
query SELECT * FROM $ks.base_by_v WHERE v = 3
rounds 0 1 2 3
for n in 0..60:
    INSERT INTO $t (k, c, v, w) VALUES ($(n % 10), $(n / 10), $((n + round) % 7), '$words(n + round, 30)') USING TIMESTAMP $(time + n)
DELETE FROM $t USING TIMESTAMP $(time + 100) WHERE k = $round AND c = $round
# The liveness of the view's row expires, but not `w` in it: once the liveness is purged, the rest of the row is too.
for n in 0..5:
    INSERT INTO $t (k, c, w) VALUES ($n, $(100 + round), 'stays') USING TIMESTAMP $(time + n + 200)
    UPDATE $t USING TIMESTAMP $(time + n + 300) AND TTL 1 SET v = $n WHERE k = $n AND c = $(100 + round)
";
