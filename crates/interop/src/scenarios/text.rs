//! Scenarios as text, with an empty line between two:
//!
//! ```text
//! name: the fault that it is meant to find
//! CREATE TABLE $t (k int, c int, v text, PRIMARY KEY (k, c))
//! input
//! for c in 0..9: INSERT INTO $t (k, c, v) VALUES (1, $c, 'v$c') USING TIMESTAMP $(10 + c)
//! input
//! at 100
//! DELETE FROM $t USING TIMESTAMP 12 WHERE k = 1 AND c = 3
//! purge all
//! ```
//!
//! Each line is a statement, of the schema before the first input, or one of these:
//!
//! | Line | Meaning |
//! |---|---|
//! | `input` | what follows is flushed into an SSTable |
//! | `at S` | the clock is at [`T0`] + S, where it is when an input begins |
//! | `shadowable K C T`, `expired K C T` | a row as only materialized views write it: key, clustering, timestamp |
//! | `for V in A..B step S:` | the rest of the line, or the deeper lines below it, with each of the numbers for `$V` |
//! | `for N, V in [X Y]:` | the same with each of these words, and its place for `$N` |
//! | `after STATEMENT` | a schema change between the last input and the merge |
//! | `others N`, `hides cells`, `leaves nothing`, `view V`, `modes V W` | as the fields of [`Scenario`] |
//! | `merge at S with grace G` | the merge's clock, from [`T0`], and its grace |
//! | `purge all`, `purge nothing` | as the functions of [`Scenario`] |
//! | `# …` | a comment |
//!
//! `$(…)` is a number that is computed, and `$hex(SEED, BYTES)` are digits of bytes that do not compress.

use compactor_testkit::Random;

use super::{Input, LONG_AFTER_S, Scenario, Step, T0, ViewRow, ViewRowKind};
use crate::cassandra::Mode;

pub(super) fn scenarios(text: &str) -> Vec<Scenario> {
    text.trim().split("\n\n").map(scenario).collect()
}

pub(super) fn scenario(text: &str) -> Scenario {
    let (title, body) = text.trim().split_once('\n').expect("lines after the title");
    let (name, about) = title.split_once(": ").expect("a name and a fault");
    let mut scenario = Scenario::new(name, about);
    let lines: Vec<&str> = body.lines().collect();
    run(&mut scenario, &lines, &[]);
    scenario
}

/// A name of a loop, and what it stands for now.
type Named = (String, String);

fn run(scenario: &mut Scenario, mut lines: &[&str], known: &[Named]) {
    let depth = |line: &str| line.len() - line.trim_start().len();
    while let Some((first, others)) = lines.split_first() {
        lines = others;
        let line = first.trim_start();
        let Some(repeated) = line.strip_prefix("for ") else {
            add(scenario, &fill(line, known));
            continue;
        };
        let (ranges, rest) = repeated.split_once(':').expect("a colon after ranges");
        let deeper = others
            .iter()
            .take_while(|other| depth(other) > depth(first));
        let (block, others) = others.split_at(deeper.count());
        lines = others;
        let repeated = if rest.is_empty() { block } else { &[rest] };
        repeat(scenario, ranges, repeated, known);
    }
}

fn repeat(scenario: &mut Scenario, ranges: &str, lines: &[&str], known: &[Named]) {
    if ranges.is_empty() {
        return run(scenario, lines, known);
    }
    let (range, inner) = ranges.split_once(" for ").unwrap_or((ranges, ""));
    let (names, range) = range.split_once(" in ").expect("names and a range");
    for (place, value) in values(&fill(range, known)).into_iter().enumerate() {
        // The name of the place, if there is one, comes first.
        let named = names.rsplit(", ").map(str::to_owned);
        let named = named.zip([value, place.to_string()]);
        let known: Vec<Named> = known.iter().cloned().chain(named).collect();
        repeat(scenario, inner, lines, &known);
    }
}

fn values(range: &str) -> Vec<String> {
    if let Some(words) = range.strip_prefix('[').and_then(|r| r.strip_suffix(']')) {
        return words.split(' ').map(str::to_owned).collect();
    }
    let (range, step) = range.split_once(" step ").unwrap_or((range, "1"));
    let (from, to) = range.split_once("..").expect("two ends of a range");
    let numbers = number(from)..number(to);
    numbers
        .step_by(number(step) as usize)
        .map(|n| n.to_string())
        .collect()
}

fn number(word: &str) -> i64 {
    word.parse()
        .unwrap_or_else(|_| panic!("{word:?} is not a number"))
}

/// A line with values for names and formulas.
fn fill(line: &str, known: &[Named]) -> String {
    let mut parts = line.split('$');
    let mut filled = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let mut formula = Formula { rest: part, known };
        filled += &match formula.word() {
            "" => formula.factor().to_string(),
            "hex" => formula.hex(),
            name => formula
                .value(name)
                .map_or(format!("${name}"), str::to_owned),
        };
        filled += formula.rest;
    }
    filled
}

struct Formula<'a> {
    rest: &'a str,
    known: &'a [Named],
}

impl<'a> Formula<'a> {
    fn value(&self, name: &str) -> Option<&'a str> {
        let named = self.known.iter().find(|(known, _)| known == name);
        named.map(|(_, value)| value.as_str())
    }

    fn word(&mut self) -> &'a str {
        let is_other = |c: char| !c.is_ascii_alphanumeric();
        let end = self.rest.find(is_other).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    fn takes(&mut self, text: &str) -> bool {
        let rest = self.rest.strip_prefix(text);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn expect(&mut self, text: &str) {
        assert!(
            self.takes(text),
            "{text:?} is missing before {:?}",
            self.rest
        );
    }

    fn hex(&mut self) -> String {
        self.expect("(");
        let seed = self.sum();
        self.expect(", ");
        let bytes = self.sum();
        self.expect(")");
        Random::new(seed as u64).hex(bytes as usize)
    }

    fn sum(&mut self) -> i64 {
        let mut sum = self.product();
        loop {
            if self.takes(" + ") {
                sum += self.product();
            } else if self.takes(" - ") {
                sum -= self.product();
            } else {
                return sum;
            }
        }
    }

    fn product(&mut self) -> i64 {
        let mut product = self.factor();
        loop {
            if self.takes(" * ") {
                product *= self.factor();
            } else if self.takes(" % ") {
                product %= self.factor();
            } else {
                return product;
            }
        }
    }

    fn factor(&mut self) -> i64 {
        if self.takes("(") {
            let sum = self.sum();
            self.expect(")");
            return sum;
        }
        let word = self.word();
        number(self.value(word).unwrap_or(word))
    }
}

fn add(scenario: &mut Scenario, line: &str) {
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    match (word, rest, scenario.inputs.last_mut()) {
        ("input", "", _) => scenario.inputs.push(Input::new()),
        ("at", _, Some(input)) => input.steps.push(Step::Now(T0 + number(rest))),
        ("shadowable", _, Some(input)) => input.steps.push(view(ViewRowKind::Shadowable, rest)),
        ("expired", _, Some(input)) => input.steps.push(view(ViewRowKind::Expired, rest)),
        ("after", ..) => scenario.after.push(rest.to_owned()),
        ("others", ..) => scenario.others = number(rest) as usize,
        ("hides", "cells", _) => scenario.hides_cells = true,
        ("leaves", "nothing", _) => scenario.empty = true,
        ("view", ..) => scenario.view = Some(rest.to_owned()),
        ("modes", ..) => {
            let modes = rest.split(' ').filter_map(Mode::of_version);
            scenario.modes = modes.collect();
        }
        ("merge", ..) => {
            let times = rest
                .strip_prefix("at ")
                .and_then(|r| r.split_once(" with grace "));
            let (now, grace) = times.expect("at S with grace G");
            scenario.set_merge(T0 + number(now), number(grace));
        }
        ("purge", "all", _) => scenario.set_merge(LONG_AFTER_S, 0),
        ("purge", "nothing", _) => scenario.gc_before_s = None,
        ("#", ..) => {}
        (_, _, Some(input)) => input.steps.push(Step::Cql(line.to_owned())),
        (_, _, None) => scenario.schema.push(line.to_owned()),
    }
}

fn view(kind: ViewRowKind, place: &str) -> Step {
    let numbers: Vec<i64> = place.split(' ').map(number).collect();
    let [key, clustering, timestamp] = numbers[..] else {
        panic!("{place:?} is not a key, a clustering and a timestamp");
    };
    Step::View(ViewRow {
        kind,
        key: key as i32,
        clustering: clustering as i32,
        timestamp,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cql(input: &Input) -> Vec<&str> {
        let mut found = Vec::new();
        for step in &input.steps {
            if let Step::Cql(statement) = step {
                found.push(statement.as_str());
            }
        }
        found
    }

    #[test]
    fn loops_repeat_and_formulas_are_computed() {
        let text = "
name: about: all of it
CREATE $t
input
for a in [x 'y z] for b in 1..$(2 + 2) step 2: $a$b
for n, a in [5 7]:
    $n $a
    for c in $a..8: $(2 * (c - n) % 5 + 1) $other$hex(c + 1, 2)
end
input
after ALTER $t
merge at 5 with grace 3

second: about
CREATE
";
        let found = scenarios(text);
        let [first, second] = &found[..] else {
            panic!("{found:?}");
        };
        assert_eq!((&*first.name, &*first.about), ("name", "about: all of it"));
        assert_eq!(first.schema, ["CREATE $t"]);
        assert_eq!(first.after, ["ALTER $t"]);
        assert_eq!((first.now_s, first.gc_before_s), (T0 + 5, Some(T0 + 2)));
        let hex = |seed| Random::new(seed).hex(2);
        let lines = |c: u64, value| format!("{value} $other{}", hex(c + 1));
        let expected = [
            "x1",
            "x3",
            "'y1",
            "'y3",
            "z1",
            "z3",
            "0 5",
            &lines(5, 1),
            &lines(6, 3),
            &lines(7, 5),
            "1 7",
            &lines(7, 3),
            "end",
        ];
        assert_eq!(cql(&first.inputs[0]), expected);
        assert_eq!(first.inputs.len(), 2);
        assert_eq!(second.name, "second");
    }

    #[test]
    fn every_scenario_is_complete() {
        let every = super::super::all();
        for scenario in &every {
            let name = &scenario.name;
            assert!(
                !scenario.schema.is_empty() && !scenario.inputs.is_empty(),
                "{name}"
            );
            let inputs = scenario.inputs.iter().flat_map(cql);
            for statement in inputs.chain(scenario.after.iter().map(String::as_str)) {
                assert!(
                    !scenario.fill(statement).contains('$'),
                    "{name}: {statement}"
                );
                assert!(
                    statement.starts_with(char::is_uppercase),
                    "{name}: {statement}"
                );
            }
        }
        let names: std::collections::BTreeSet<_> = every.iter().map(|s| &s.name).collect();
        assert_eq!(names.len(), every.len());
    }
}
