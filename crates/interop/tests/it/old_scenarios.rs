//! Tables for `old_releases`: data that only old releases write, or write in another form.

use interop::scenarios::Scenario;

/// Name of the scenario with every type.
pub(crate) const TYPES_NAME: &str = "old_types";

/// Every type that 3.0 has, with a value.
const TYPES: [(&str, &str); 24] = [
    ("ascii", "'a'"),
    ("bigint", "-5"),
    ("blob", "0x00ff"),
    ("boolean", "true"),
    ("date", "'2015-09-22'"),
    ("decimal", "-1.50"),
    ("double", "-0.1"),
    ("float", "1e10"),
    ("inet", "'::1'"),
    ("int", "7"),
    ("smallint", "-300"),
    ("text", "'ü'"),
    ("time", "'08:12:54.123456789'"),
    ("timestamp", "1442880000000"),
    ("timeuuid", "50554d6e-29bb-11e5-b345-feff819cdc9f"),
    ("tinyint", "-1"),
    ("uuid", "01234567-0123-4123-8123-0123456789ab"),
    ("varint", "-123456789012345678901234567890"),
    ("list<int>", "[3, 1, 2]"),
    ("set<inet>", "{'10.0.0.1', '::2'}"),
    ("map<timestamp, text>", "{5: 'x', -5: ''}"),
    ("frozen<list<frozen<set<int>>>>", "[{2, 1}, {}]"),
    ("frozen<tuple<int, text, double>>", "(1, null, 2.5)"),
    ("frozen<u>", "{a: 1, b: {'z', 'y'}}"),
];

/// Scenario with every type in a row, under a composite partition key and several clustering columns.
pub(crate) fn types() -> Scenario {
    let names: Vec<String> = (0..TYPES.len()).map(|n| format!("v{n}")).collect();
    let definitions: Vec<String> = names
        .iter()
        .zip(TYPES)
        .map(|(name, (cql_type, _))| format!("{name} {cql_type}"))
        .collect();
    let values: Vec<&str> = TYPES.iter().map(|(_, value)| *value).collect();
    let insert = |timestamp: u32, ttl: &str, row: u32| {
        format!(
            "INSERT INTO $t (k1, k2, c1, c2, {}) VALUES (1, 'k', 'c', {row}, {}) USING TIMESTAMP {timestamp}{ttl}",
            names.join(", "),
            values.join(", ")
        )
    };
    let row = "WHERE k1 = 1 AND k2 = 'k' AND c1 = 'c' AND c2";
    Scenario::new(TYPES_NAME, "every type of 3.0")
        .schema("CREATE TYPE $ks.u (a int, b frozen<set<text>>)")
        .schema(format!(
            "CREATE TABLE $t (k1 int, k2 text, c1 text, c2 timestamp, s decimal static, {}, PRIMARY KEY ((k1, k2), c1, c2)) WITH CLUSTERING ORDER BY (c1 ASC, c2 DESC)",
            definitions.join(", ")
        ))
        .input(|input| {
            input.all((0..3).map(|row| insert(10, "", row)));
            input.cql("UPDATE $t USING TIMESTAMP 11 SET s = 1.0 WHERE k1 = 1 AND k2 = 'k'");
        })
        .input(|input| {
            input.cql(insert(20, " AND TTL 100000", 1));
            input.cql(format!("UPDATE $t USING TIMESTAMP 21 SET v18 = [9], v19 = v19 - {{'::2'}} {row} = 2"));
            input.cql(format!("DELETE v20, v0 FROM $t USING TIMESTAMP 22 {row} = 0"));
        })
}
