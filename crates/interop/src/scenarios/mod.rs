//! Schemas and mutations for the tests. Deterministic: the same statements in every run and mode.
//!
//! A scenario is a table, one to four inputs (each a list of statements that end in one flush), and the clock and
//! gc_before of the merge. In statements `$t` stands for the table and `$ks` for its keyspace. Most are written as `text`;
//! those that need more than loops are built by [`Scenario`]'s functions.

mod collections;
mod columns;
mod compact_storage;
mod deletions;
mod dropped;
mod expiry;
mod provided;
mod random;
mod shapes;
mod text;
mod types;
mod values;
mod wide;

use serde::Serialize;

use crate::cassandra::{Mode, Table};

/// Base time of all scenarios: 2023-11-14T22:13:20Z.
pub const T0: i64 = 1_700_000_000;

/// A time at which all tombstones of the inputs are old.
const LONG_AFTER_S: i64 = T0 + 10_000_000;

/// Operations on the table before a flush.
#[derive(Debug, Clone)]
pub enum Step {
    /// The clock is set: deletions and TTLs of later statements start here.
    Now(i64),
    /// A statement.
    Cql(String),
    /// A row that CQL cannot write.
    View(ViewRow),
}

/// A row as only materialized views write it.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct ViewRow {
    /// Kind of row.
    #[serde(rename = "what")]
    pub kind: ViewRowKind,
    /// Partition key.
    pub key: i32,
    /// Clustering.
    pub clustering: i32,
    /// Timestamp in microseconds.
    pub timestamp: i64,
}

/// Rows that materialized views write and CQL cannot.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ViewRowKind {
    /// A row deletion that newer liveness lifts.
    Shadowable,
    /// Liveness that is expired from the start.
    Expired,
}

/// The statements whose result is flushed into one SSTable.
#[derive(Debug, Clone, Default)]
pub struct Input {
    /// In order.
    pub steps: Vec<Step>,
}

impl Input {
    /// An input whose clock starts at [`T0`].
    fn new() -> Self {
        Self {
            steps: vec![Step::Now(T0)],
        }
    }

    /// Adds a statement.
    pub fn cql(&mut self, statement: impl Into<String>) -> &mut Self {
        self.steps.push(Step::Cql(statement.into()));
        self
    }

    /// Adds several statements.
    pub fn all<S: Into<String>>(&mut self, statements: impl IntoIterator<Item = S>) -> &mut Self {
        for statement in statements {
            self.cql(statement);
        }
        self
    }

    /// Moves the clock.
    pub fn at(&mut self, now_s: i64) -> &mut Self {
        self.steps.push(Step::Now(now_s));
        self
    }
}

/// A test case: a table, its inputs, and a merge.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// Name, also of the directory of its files.
    pub name: String,
    /// The defect that it is meant to find.
    pub about: String,
    /// Types first, then the table.
    pub schema: Vec<String>,
    /// One SSTable each, oldest first.
    pub inputs: Vec<Input>,
    /// Schema changes after the last input and before the merge.
    pub after: Vec<String>,
    /// A view that `after` creates, of the table `base`: the inputs are merged as its SSTables.
    pub view: Option<String>,
    /// Number of the last inputs that are overlapping SSTables, which are not merged.
    pub others: usize,
    /// The merge's clock.
    pub now_s: i64,
    /// The merge's gc_before; `None` purges nothing.
    pub gc_before_s: Option<i64>,
    /// Modes of the servers that can write it.
    pub modes: Vec<Mode>,
    /// Whether everything is purged, so that there must be no output.
    pub empty: bool,
    /// Whether the current schema hides cells of the inputs, so that single inputs are not examined.
    pub hides_cells: bool,
}

impl Scenario {
    /// A scenario whose merge happens at [`T0`] + 1000 with the usual ten days of grace.
    pub fn new(name: impl Into<String>, about: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            about: about.into(),
            schema: Vec::new(),
            inputs: Vec::new(),
            after: Vec::new(),
            view: None,
            others: 0,
            now_s: T0 + 1000,
            gc_before_s: Some(T0 + 1000 - 864_000),
            modes: Mode::ALL.to_vec(),
            empty: false,
            hides_cells: false,
        }
    }

    /// Adds a schema statement.
    #[must_use]
    pub fn schema(mut self, statement: impl Into<String>) -> Self {
        self.schema.push(statement.into());
        self
    }

    /// Adds an input whose clock starts at [`T0`].
    #[must_use]
    pub fn input(mut self, fill: impl FnOnce(&mut Input)) -> Self {
        let mut input = Input::new();
        fill(&mut input);
        self.inputs.push(input);
        self
    }

    /// Sets the merge's clock and grace: gc_before is the difference.
    #[must_use]
    pub fn merge_at(mut self, now_s: i64, gc_grace_s: i64) -> Self {
        self.set_merge(now_s, gc_grace_s);
        self
    }

    fn set_merge(&mut self, now_s: i64, gc_grace_s: i64) {
        self.now_s = now_s;
        self.gc_before_s = Some(now_s - gc_grace_s);
    }

    /// Everything that can be purged is purged: all tombstones of the inputs are older than gc_before.
    #[must_use]
    pub fn purge_all(self) -> Self {
        self.merge_at(LONG_AFTER_S, 0)
    }

    /// Purges nothing.
    #[must_use]
    pub fn no_purge(mut self) -> Self {
        self.gc_before_s = None;
        self
    }

    /// Makes the last `count` inputs overlapping SSTables.
    #[must_use]
    pub fn others(mut self, count: usize) -> Self {
        self.others = count;
        self
    }

    /// The table, in a keyspace of the scenario's name.
    #[must_use]
    pub fn table(&self) -> Table {
        Table::new(&self.name, "t")
    }

    /// A statement with the names filled in.
    #[must_use]
    pub fn fill(&self, statement: &str) -> String {
        statement
            .replace("$t", &format!("{}.t", self.name))
            .replace("$ks", &self.name)
    }

    /// The statements that create keyspace and table.
    #[must_use]
    pub fn ddl(&self) -> Vec<String> {
        let mut statements = vec![format!(
            "CREATE KEYSPACE {} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}",
            self.name
        )];
        statements.extend(self.schema.iter().map(|statement| self.fill(statement)));
        statements
    }
}

/// Every scenario, or those whose name is in `COMPACTOR_INTEROP_SCENARIO` (comma separated; a trailing `*` matches
/// any rest).
#[must_use]
pub fn selected() -> Vec<Scenario> {
    let every = all();
    let Ok(wanted) = std::env::var("COMPACTOR_INTEROP_SCENARIO") else {
        return every;
    };
    every
        .into_iter()
        .filter(|scenario| {
            wanted
                .split(',')
                .any(|pattern| matches(pattern, &scenario.name))
        })
        .collect()
}

/// Whether a name fits a pattern with an optional trailing `*`.
#[must_use]
pub fn matches(pattern: &str, name: &str) -> bool {
    pattern
        .strip_suffix('*')
        .map_or(pattern == name, |prefix| name.starts_with(prefix))
}

/// A list in CQL syntax.
fn list<T: Into<String>>(items: impl IntoIterator<Item = T>) -> String {
    let items: Vec<String> = items.into_iter().map(Into::into).collect();
    items.join(", ")
}

/// Every scenario.
#[must_use]
pub fn all() -> Vec<Scenario> {
    [
        shapes::scenarios(),
        values::scenarios(),
        types::scenarios(),
        collections::scenarios(),
        columns::scenarios(),
        compact_storage::scenarios(),
        deletions::scenarios(),
        dropped::scenarios(),
        expiry::scenarios(),
        wide::scenarios(),
        random::scenarios(),
        provided::scenarios(),
    ]
    .concat()
}
