//! Results of Cassandra 6.0-alpha2 (on JDK 25) for values of random types, in `cassandra.tsv`: type, value,
//! another value, sign of their order, JSON and text of the first; values, JSON and text in hexadecimal
//! digits, `!` if Cassandra throws.
//!
//! Computed by `AbstractType.compare`, `toJSONString` and `getString`, for values that pass `validate`.

use compactor_sstable::types::CqlType;

fn bytes(digits: &str) -> Vec<u8> {
    let digits: Vec<u8> = digits.bytes().filter_map(hex_digit).collect();
    digits
        .chunks_exact(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect()
}

fn hex_digit(c: u8) -> Option<u8> {
    char::from(c).to_digit(16).map(|digit| digit as u8)
}

fn text(digits: &str) -> String {
    String::from_utf8(bytes(digits)).unwrap_or_default()
}

#[test]
fn order_json_and_text_are_cassandras() {
    let mut lines = 0;
    for line in include_str!("cassandra.tsv").lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let [name, a, b, order, json, shown] = fields[..] else {
            panic!("{line}")
        };
        let cql_type = CqlType::parse(name).unwrap();
        let (a, b) = (bytes(a), bytes(b));
        assert_eq!(cql_type.validate(&a), Ok(()), "{line}");
        assert_eq!(
            (cql_type.compare(&a, &b) as i8).to_string(),
            order,
            "{line}"
        );
        let mut found = String::new();
        if cql_type.to_json(&a, &mut found).is_err() {
            found.push('!');
        }
        assert_eq!(found, text(json), "{line}");
        assert_eq!(
            cql_type.to_text(&a).unwrap_or("!".to_owned()),
            text(shown),
            "{line}"
        );
        lines += 1;
    }
    assert_eq!(lines, 344);
}
