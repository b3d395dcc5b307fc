//! Tables of every kind: what is made in a daemon, written in four rounds with a flush after each, and asked for.
//!
//! Every write has a timestamp of its own, so that the order in which a client sends the writes of a round does not
//! matter. Nothing expires while a test runs: TTLs are seconds, which are over before anybody looks, or months.

mod columns;
mod compression;
mod indexes;
mod shapes;
mod strategies;

use super::kind::{Kind, WIDE};
use compactor_testkit::Random;

/// The keyspace of all of them.
pub(crate) const KEYSPACE: &str = "rig";

/// The table whose later files are compressed with a dictionary.
pub(crate) const DICTIONARY: &str = "dictionary";

/// The table whose content ends where a chunk does.
pub(crate) const CHUNK_END: &str = "chunk_end";

/// Flushes that each table gets.
pub(crate) const ROUNDS: u32 = 4;

/// A table, what is written to it, and what is asked of it.
#[derive(Debug, Clone)]
pub struct Table {
    /// Its name as the schema has it.
    pub name: &'static str,
    /// Statements that make it; `$t` stands for its name and `$ks` for the keyspace.
    pub(crate) schema: Vec<String>,
    /// Writes before each flush.
    pub(crate) rounds: Vec<Round>,
    /// Queries whose answers must stay the same.
    pub(crate) queries: Vec<String>,
    /// Materialized views of it: names, and the statements that make them.
    pub(crate) views: Vec<(&'static str, &'static str)>,
    /// Old secondary indexes of it, which have SSTables of their own.
    pub(crate) indexes: Vec<&'static str>,
    /// nodetool commands after the second flush.
    pub(crate) nodetool: Vec<&'static str>,
    /// The first major release that has it.
    since: u32,
}

/// SSTables of a table or of one of its materialized views.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stored<'a> {
    /// Its name as the schema has it.
    pub(crate) name: &'a str,
    /// The base table, of a view.
    pub(crate) base: Option<&'a str>,
}

/// Writes before a flush.
#[derive(Debug, Clone, Default)]
pub(crate) struct Round {
    /// Changes of the schema, in this order.
    pub(crate) changes: Vec<String>,
    /// Writes, in any order.
    pub(crate) writes: Vec<String>,
}

impl Table {
    /// A table that each round writes to.
    fn new(
        name: &'static str,
        create: impl Into<String>,
        write: impl Fn(u32, &mut Vec<String>),
    ) -> Self {
        let round = |n| {
            let mut round = Round::default();
            write(n, &mut round.writes);
            round
        };
        Self {
            name,
            schema: vec![create.into()],
            rounds: (0..ROUNDS).map(round).collect(),
            queries: Vec::new(),
            views: Vec::new(),
            indexes: Vec::new(),
            nodetool: Vec::new(),
            since: 3,
        }
    }

    /// A table to which each round writes `count` rows, with a statement each.
    fn rows(
        name: &'static str,
        create: impl Into<String>,
        count: u32,
        write: impl Fn(u32, u32) -> String,
    ) -> Self {
        Self::new(name, create, |round, writes| {
            writes.extend((0..count).map(|n| write(round, n)));
        })
    }

    /// A statement before the one that creates the table, such as that of a type.
    fn before(mut self, statement: &str) -> Self {
        self.schema
            .insert(self.schema.len() - 1, statement.to_owned());
        self
    }

    /// A statement after those that there are.
    fn after(mut self, statement: &str) -> Self {
        self.schema.push(statement.to_owned());
        self
    }

    /// A change of the schema before what round `n` writes.
    fn change(mut self, n: usize, statement: &str) -> Self {
        self.rounds[n].changes.push(statement.to_owned());
        self
    }

    fn query(mut self, query: impl Into<String>) -> Self {
        self.queries.push(query.into());
        self
    }

    /// A materialized view, by its name and statement.
    fn view(mut self, name: &'static str, create: &'static str) -> Self {
        self.views.push((name, create));
        self.after(create)
    }

    /// An old secondary index, by its name and what it is on.
    fn index(mut self, name: &'static str, target: &str) -> Self {
        self.indexes.push(name);
        self.after(&format!("CREATE INDEX {name} ON $t ({target})"))
    }

    fn nodetool(mut self, arguments: &[&'static str]) -> Self {
        self.nodetool = arguments.to_vec();
        self
    }

    fn since(mut self, major: u32) -> Self {
        self.since = major;
        self
    }

    /// The name as CQL wants it.
    pub(crate) fn cql_name(&self) -> String {
        format!("{KEYSPACE}.\"{}\"", self.name)
    }

    /// Itself and its views.
    pub(crate) fn stored(&self) -> impl Iterator<Item = Stored<'_>> {
        let views = self.views.iter().map(|(name, _)| Stored {
            name,
            base: Some(self.name),
        });
        let table = Stored {
            name: self.name,
            base: None,
        };
        std::iter::once(table).chain(views)
    }

    /// A statement with names filled in.
    pub(crate) fn fill(&self, statement: &str) -> String {
        statement
            .replace("$t", &self.cql_name())
            .replace("$ks", KEYSPACE)
    }
}

/// The tables that a daemon can have.
#[must_use]
pub fn of(kind: Kind) -> Vec<Table> {
    let all = [
        shapes::tables(),
        columns::tables(),
        compression::tables(kind),
        strategies::tables(),
        indexes::tables(),
    ];
    let mut tables: Vec<Table> = all.into_iter().flatten().collect();
    tables.retain(|table| table.since <= kind.major());
    // Its cursors take static rows for damage once the table has no static column any more.
    tables.retain(|table| !(kind.has_cursors() && table.name == "dropped"));
    tables
}

/// Microseconds of the `n`th write of a round: later rounds are newer.
fn time(round: u32, n: u32) -> i64 {
    1_700_000_000_000_000 + i64::from(round) * 1_000_000_000 + i64::from(n)
}

/// Text that compresses about as well as people's do.
fn text(seed: u32, len: usize) -> String {
    const WORDS: [&str; 16] = [
        "token", "ring", "row", "cell", "merge", "flush", "level", "tier", "chunk", "index", "key",
        "node", "rack", "table", "view", "hint",
    ];
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(12_345);
    let mut text = String::new();
    while text.len() < len {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        text.push_str(WORDS[(state >> 28) as usize]);
        text.push_str(&(state >> 8 & 0xfff).to_string());
    }
    text.truncate(len);
    text
}

/// A blob literal that does not compress.
fn noise(seed: u32, len: usize) -> String {
    format!("0x{}", Random::new(u64::from(seed)).hex(len))
}
