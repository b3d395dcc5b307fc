//! Facts on where and how an outcome was measured, as names and values.

use serde::Serialize;
use serde_json::{Map, Value};

use super::document::Facts;
use super::units::{bytes, seconds, significant, utc};
use crate::outcome::{End, Environment, OutcomeHeader};
use crate::text_table::count;

/// Text of a field that the system did not report, or that was not set.
const NULL: &str = "none";

/// Suffix of a name that is a unit, and the text of a number in that unit.
type Unit = (&'static str, fn(f64) -> String);

/// The longer suffixes first.
const UNITS: [Unit; 6] = [
    ("_bytes_per_s", |n| format!("{}/s", bytes(n))),
    ("_per_s", |n| format!("{}/s", significant(n))),
    ("_bytes", bytes),
    ("_kb", |n| bytes(n * 1024.0)),
    ("_ms", |n| format!("{} ms", significant(n))),
    ("_s", seconds),
];

/// Time of an experiment, its command line, facts of its own, and the machine.
pub(crate) fn of_experiment(
    header: &OutcomeHeader,
    command: Option<&[String]>,
    own: impl IntoIterator<Item = Facts>,
    machine: &Environment,
) -> Facts {
    let interrupted = match header.end {
        End::Complete => "",
        End::Interrupted => ", INTERRUPTED: not all runs took place",
    };
    let time = format!(
        "{}, {}{interrupted}",
        utc(header.started_at_ms),
        seconds(header.elapsed_s)
    );
    let mut facts = vec![("started".to_owned(), time)];
    facts.extend(command.map(|words| ("command".to_owned(), words.join(" "))));
    facts.extend(own.into_iter().flatten());
    facts.extend(of_record("machine", machine, &[]));
    facts
}

/// The fields of a record but for some, as a fact; those that are records themselves, as facts of their own.
pub(crate) fn of_record(name: &str, record: &impl Serialize, without: &[&str]) -> Facts {
    let Ok(Value::Object(mut fields)) = serde_json::to_value(record) else {
        return Facts::new();
    };
    fields.retain(|name, _| !without.contains(&name.as_str()));
    let (records, fields): (Map<_, _>, Map<_, _>) =
        fields.into_iter().partition(|(_, value)| value.is_object());
    let own = (name.to_owned(), sentence(&fields));
    let records = records.into_iter().map(|(name, value)| {
        let text = text(&name, &value);
        (spaced(&name), text)
    });
    std::iter::once(own).chain(records).collect()
}

/// The fields of a record in a sentence.
pub(crate) fn in_sentence(record: &impl Serialize) -> String {
    match serde_json::to_value(record) {
        Ok(Value::Object(fields)) => sentence(&fields),
        _ => String::new(),
    }
}

fn sentence(fields: &Map<String, Value>) -> String {
    let field = |(name, value): (&String, &Value)| {
        let quantity = unit_of(name).and_then(|(suffix, _)| name.strip_suffix(suffix));
        format!("{} {}", spaced(quantity.unwrap_or(name)), text(name, value))
    };
    let fields: Vec<String> = fields.iter().map(field).collect();
    fields.join(", ")
}

/// The text of a field, whose name ends with its unit.
fn text(name: &str, value: &Value) -> String {
    match value {
        Value::Null => NULL.to_owned(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::String(text) => text.clone(),
        Value::Number(number) => {
            let value = number.as_f64().unwrap_or(f64::NAN);
            match (unit_of(name), number.as_u64()) {
                (Some((_, text)), _) => text(value),
                (None, Some(whole)) => count(whole),
                (None, None) => significant(value),
            }
        }
        Value::Array(values) if values.is_empty() => NULL.to_owned(),
        Value::Array(values) => {
            let values: Vec<String> = values.iter().map(|value| text(name, value)).collect();
            values.join(" ")
        }
        Value::Object(fields) => sentence(fields),
    }
}

/// The unit at the end of a name.
fn unit_of(name: &str) -> Option<&'static Unit> {
    let mut units = UNITS.iter();
    units.find(|(suffix, _)| name.ends_with(suffix) || suffix[1..] == *name)
}

fn spaced(name: &str) -> String {
    name.replace('_', " ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_tell_units() {
        let record = json!({
            "hot_sets_bytes": [1 << 20, 1 << 30],
            "limit_bytes_per_s": 65536.0,
            "is_warm": true,
            "before_s": 5,
            "bytes": 1024,
            "device": {"name": "vda", "model": null},
        });
        let facts = of_record("options", &record, &["is_warm"]);
        let options = "before 5.00 s, bytes 1 KiB, hot sets 1 MiB 1 GiB, limit 64 KiB/s";
        assert_eq!(facts[0], ("options".to_owned(), options.to_owned()));
        let device = "model none, name vda";
        assert_eq!(facts[1], ("device".to_owned(), device.to_owned()));
    }
}
