//! A client's view of tables, and the differences between two views.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde_json::Value;

use super::client::Rows;
use super::node::Node;
use super::tables::{KEYSPACE, Table};

/// Tolerance for expiration times, which are computed from the remaining TTL and the client's clock.
const TOLERANCE_S: i64 = 120;

/// Answers by table, view or query.
#[derive(Debug, Clone)]
pub(crate) struct View(BTreeMap<String, Rows>);

impl View {
    /// All columns, WRITETIME and TTL of each table, its views, and its queries.
    pub(crate) fn of(node: &mut Node, tables: &[&Table]) -> Result<Self> {
        let times_of_collections = node.kind().major() >= 5;
        let client = node.client()?;
        let mut answers = BTreeMap::new();
        for table in tables {
            let all = client.view(KEYSPACE, table.name, times_of_collections)?;
            answers.insert(table.name.to_owned(), all);
            for (view, _) in &table.views {
                // The node writes rows of a view with times of its own.
                let query = format!("SELECT * FROM {KEYSPACE}.{view}");
                answers.insert((*view).to_owned(), client.rows(&query)?);
            }
            for query in &table.queries {
                let query = table.fill(query);
                let mut found = client.rows(&query).with_context(|| query.clone())?;
                // An index may return its rows in any order.
                found
                    .rows
                    .sort_by_cached_key(|row| Value::from(row.clone()).to_string());
                answers.insert(query, found);
            }
        }
        Ok(Self(answers))
    }

    /// Number of rows in all answers.
    pub(crate) fn rows(&self) -> usize {
        self.0.values().map(|answer| answer.rows.len()).sum()
    }

    /// Names of answers without rows, which prove nothing.
    pub(crate) fn empty(&self) -> Vec<&str> {
        let empty = self.0.iter().filter(|(_, answer)| answer.rows.is_empty());
        empty.map(|(name, _)| name.as_str()).collect()
    }

    /// Differences from this view, a line each.
    pub(crate) fn differences(&self, later: &Self) -> Vec<String> {
        let mut found = Vec::new();
        for (name, before) in &self.0 {
            let Some(after) = later.0.get(name) else {
                found.push(format!("{name}: missing in the later view"));
                continue;
            };
            if before.columns != after.columns {
                found.push(format!(
                    "{name}: columns {:?}, then {:?}",
                    before.columns, after.columns
                ));
            } else if before.rows.len() != after.rows.len() {
                found.push(format!(
                    "{name}: {} rows, then {}",
                    before.rows.len(),
                    after.rows.len()
                ));
            }
            let pairs = before.rows.iter().zip(&after.rows);
            let differing: Vec<_> = pairs.filter(|(a, b)| !same_row(a, b)).collect();
            if let Some((a, b)) = differing.first() {
                found.push(format!(
                    "{name}: {} rows differ, the first was {}, then {}",
                    differing.len(),
                    Value::from((*a).clone()),
                    Value::from((*b).clone())
                ));
            }
        }
        found
    }
}

fn same_row(a: &[Value], b: &[Value]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
}

fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => match (expiry(a), expiry(b)) {
            (Some(a), Some(b)) => (a - b).abs() <= TOLERANCE_S,
            _ => a.len() == b.len() && a.iter().all(|(k, v)| b.get(k).is_some_and(|w| same(v, w))),
        },
        (Value::Array(a), Value::Array(b)) => same_row(a, b),
        _ => a == b,
    }
}

fn expiry(object: &serde_json::Map<String, Value>) -> Option<i64> {
    object.get("expires").and_then(Value::as_i64)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_expiration_may_differ_slightly() {
        assert!(same(
            &json!([1, {"expires": 500}]),
            &json!([1, {"expires": 501}])
        ));
        assert!(!same(
            &json!([{"expires": 500}]),
            &json!([{"expires": 50_000}])
        ));
        assert!(!same(&json!([{"expires": 500}]), &json!([null])));
        assert!(!same(&json!({"a": 500}), &json!({"a": 501})));
        assert!(!same(&json!([1]), &json!([1, 2])));
    }
}
