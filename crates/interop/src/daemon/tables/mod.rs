//! Tables of every kind, which are created in a daemon, written in four rounds with a flush after each, and queried.
//!
//! Every write has a timestamp of its own, so that the order in which a client sends the writes of a round does not
//! matter. Nothing expires between two reads: TTLs are either seconds, over before the first read, or months.

mod columns;
mod compression;
mod indexes;
mod shapes;
mod strategies;

use super::kind::Kind;
use crate::template;
use compactor_testkit::Random;

/// The keyspace of all of them.
pub(crate) const KEYSPACE: &str = "rig";

/// The table whose later files are compressed with a dictionary.
pub(crate) const DICTIONARY: &str = "dictionary";

/// The table whose content ends where a chunk does.
pub(crate) const CHUNK_END: &str = "chunk_end";

/// Flushes that each table gets.
pub(crate) const ROUNDS: u32 = 4;

/// A table, its writes, and its queries.
#[derive(Debug, Clone, Default)]
pub struct Table {
    /// Name in the schema.
    pub name: &'static str,
    /// Statements that create it; `$t` stands for its name and `$ks` for the keyspace.
    pub(crate) schema: Vec<String>,
    /// Writes before each flush.
    pub(crate) rounds: Vec<Round>,
    /// Queries whose answers must stay the same.
    pub(crate) queries: Vec<String>,
    /// Its materialized views: names, and the statements that create them.
    pub(crate) views: Vec<(&'static str, &'static str)>,
    /// Its old secondary indexes, which have SSTables of their own.
    pub(crate) indexes: Vec<&'static str>,
    /// nodetool commands after the second flush.
    pub(crate) nodetool: Vec<&'static str>,
    /// First major release that supports it.
    since: u32,
}

/// SSTables of a table or of one of its materialized views.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stored<'a> {
    /// Name in the schema.
    pub(crate) name: &'a str,
    /// Base table of a view.
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
            ..Self::default()
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

    fn nodetool(mut self, arguments: &[&'static str]) -> Self {
        self.nodetool = arguments.to_vec();
        self
    }

    fn since(mut self, major: u32) -> Self {
        self.since = major;
        self
    }

    /// The quoted name with the keyspace.
    pub(crate) fn cql_name(&self) -> String {
        format!("{KEYSPACE}.\"{}\"", self.name)
    }

    /// The table and its views.
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
    // Cursors report static rows as damage once the table has no static column any more.
    tables.retain(|table| !(kind.has_cursors() && table.name == "dropped"));
    tables
}

/// Tables as text, with an empty line between two. Each has its name, then a line for each statement of its schema, and
/// then for each write; those of the rounds that a line like `rounds 0 2` names are below it. Also:
///
/// | Line | Meaning |
/// |---|---|
/// | `since N` | the first major release that supports it |
/// | `index NAME TARGET` | an old secondary index |
/// | `view NAME STATEMENT` | a materialized view |
/// | `query STATEMENT` | a query |
/// | `# …` | a comment |
///
/// Loops and formulas are those of [`template`]. `$round` is the round, and `$time` its first microsecond.
fn from_text(text: &'static str) -> Vec<Table> {
    text.trim().split("\n\n").map(table).collect()
}

fn table(text: &'static str) -> Table {
    let lines = text
        .lines()
        .filter(|line| !line.trim_start().starts_with('#'));
    let lines: Vec<&'static str> = lines.collect();
    let rounds = lines.iter().position(|line| line.starts_with("rounds "));
    let (head, writes) = lines.split_at(rounds.expect("rounds of writes"));
    let (name, head) = head.split_first().expect("a name");
    let mut table = Table {
        name,
        rounds: vec![Round::default(); ROUNDS as usize],
        ..Table::default()
    };
    for line in head {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let (name, definition) = rest.split_once(' ').unwrap_or((rest, ""));
        let schema = &mut table.schema;
        match word {
            "since" => table.since = rest.parse().expect("a major release"),
            "query" => table.queries.push(rest.to_owned()),
            "index" => {
                table.indexes.push(name);
                schema.push(format!("CREATE INDEX {name} ON $t ({definition})"));
            }
            "view" => {
                table.views.push((name, definition));
                schema.push(definition.to_owned());
            }
            _ => schema.push((*line).to_owned()),
        }
    }
    for (n, round) in (0..).zip(&mut table.rounds) {
        let (number, start) = (n.to_string(), time(n, 0).to_string());
        let known = [
            ("round".to_owned(), number.clone()),
            ("time".to_owned(), start),
        ];
        let mut is_of_round = false;
        template::expand(writes, &known, &mut |line| match line.split_once(' ') {
            Some(("rounds", rounds)) => {
                let rounds: Vec<i64> = rounds.split(' ').map(template::number).collect();
                let are_known = rounds.iter().all(|of| (0..ROUNDS.into()).contains(of));
                assert!(are_known, "{name}: rounds {rounds:?}");
                is_of_round = rounds.contains(&i64::from(n));
            }
            _ if !is_of_round => {}
            Some(("ALTER", _)) => round.changes.push(line.to_owned()),
            _ => round.writes.push(line.to_owned()),
        });
    }
    table
}

/// Microseconds of the `n`th write of a round: later rounds are newer.
fn time(round: u32, n: u32) -> i64 {
    1_700_000_000_000_000 + i64::from(round) * 1_000_000_000 + i64::from(n)
}

/// A blob literal that does not compress.
fn noise(seed: u32, len: usize) -> String {
    format!("0x{}", Random::new(u64::from(seed)).hex(len))
}
