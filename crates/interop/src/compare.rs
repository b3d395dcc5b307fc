//! Differences between Cassandra's result and ours, as text.

use serde_json::Value;

/// The first line in which two dumps differ, or `None`.
#[must_use]
pub fn lines(expected: &str, found: &str) -> Option<String> {
    let mut left = expected.lines();
    let mut right = found.lines();
    for number in 1.. {
        match (left.next(), right.next()) {
            (None, None) => return None,
            (a, b) if a == b => {}
            (a, b) => {
                return Some(format!(
                    "line {number}\n  expected {}\n  found    {}",
                    line(a),
                    line(b)
                ));
            }
        }
    }
    None
}

fn line(line: Option<&str>) -> String {
    line.map_or("(end)".to_owned(), |line| line.chars().take(800).collect())
}

/// Differences between two sequences of JSON lines, whatever the order of keys and the spelling of numbers.
///
/// # Errors
/// A line that is not JSON.
pub fn json_lines(expected: &str, found: &str) -> anyhow::Result<Vec<String>> {
    let parse = |text: &str| -> anyhow::Result<Vec<Value>> {
        let filled = text.lines().filter(|line| !line.trim().is_empty());
        Ok(filled.map(serde_json::from_str).collect::<Result<_, _>>()?)
    };
    let (expected, found) = (parse(expected)?, parse(found)?);
    let mut differences = Vec::new();
    json(
        "",
        &Value::Array(expected),
        &Value::Array(found),
        &mut differences,
    );
    Ok(differences)
}

/// Adds the paths at which two JSON values differ.
pub fn json(path: &str, expected: &Value, found: &Value, differences: &mut Vec<String>) {
    match (expected, found) {
        (Value::Object(left), Value::Object(right)) => {
            let mut names: Vec<&String> = left.keys().chain(right.keys()).collect();
            names.sort();
            names.dedup();
            for name in names {
                let at = |map: &serde_json::Map<String, Value>| {
                    map.get(name)
                        .cloned()
                        .unwrap_or_else(|| Value::String("(absent)".to_owned()))
                };
                json(
                    &format!("{path}/{name}"),
                    &at(left),
                    &at(right),
                    differences,
                );
            }
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            for (index, (a, b)) in left.iter().zip(right).enumerate() {
                json(&format!("{path}/{index}"), a, b, differences);
            }
        }
        (a, b) if a == b => {}
        (a, b) => differences.push(format!(
            "{path}: expected {}, found {}",
            line(Some(&a.to_string())),
            line(Some(&b.to_string()))
        )),
    }
}
