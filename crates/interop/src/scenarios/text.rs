//! Scenarios as text, with an empty line between two:
//!
//! ```text
//! name: the defect that it is meant to find
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
//! | `input` | the lines below are flushed into an SSTable |
//! | `at S` | the clock is at [`T0`] + S, where it is when an input begins |
//! | `shadowable K C T`, `expired K C T` | a row as only materialized views write it: key, clustering, timestamp |
//! | `after STATEMENT` | a schema change between the last input and the merge |
//! | `others N`, `hides cells`, `leaves nothing`, `view V`, `modes V W` | as the fields of [`Scenario`] |
//! | `merge at S with grace G` | the merge's clock, from [`T0`], and its grace |
//! | `purge all`, `purge nothing` | as the functions of [`Scenario`] |
//! | `# …` | a comment |
//!
//! Loops and formulas are those of [`template`].

use super::{Input, LONG_AFTER_S, Scenario, Step, T0, ViewRow, ViewRowKind};
use crate::cassandra::Mode;
use crate::template::{self, number};

pub(super) fn scenarios(text: &str) -> Vec<Scenario> {
    text.trim().split("\n\n").map(scenario).collect()
}

pub(super) fn scenario(text: &str) -> Scenario {
    let (title, body) = text.trim().split_once('\n').expect("lines after the title");
    let (name, about) = title.split_once(": ").expect("a name and a defect");
    let mut scenario = Scenario::new(name, about);
    let lines: Vec<&str> = body.lines().collect();
    template::expand(&lines, &[], &mut |line| add(&mut scenario, line));
    scenario
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
            let versions = rest.split(' ').map(Mode::of_version);
            let modes: Option<Vec<Mode>> = versions.collect();
            scenario.modes = modes.expect("versions that servers write");
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
    fn lines_are_statements_or_settings() {
        let text = "
name: about: all of it
CREATE $t
input
# A comment.
for c in 1..3: INSERT $c
at 7
shadowable 1 2 3
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
        assert_eq!(
            (&first.schema[..], &first.after[..]),
            (&["CREATE $t".to_owned()][..], &["ALTER $t".to_owned()][..])
        );
        assert_eq!((first.now_s, first.gc_before_s), (T0 + 5, Some(T0 + 2)));
        let steps = format!("{:?}", first.inputs[0].steps);
        let view = "View(ViewRow { kind: Shadowable, key: 1, clustering: 2, timestamp: 3 })";
        let (begin, later) = (T0, T0 + 7);
        let expected =
            format!("[Now({begin}), Cql(\"INSERT 1\"), Cql(\"INSERT 2\"), Now({later}), {view}]");
        assert_eq!(steps, expected);
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
            let of_table = scenario.schema.iter().chain(&scenario.after);
            for statement in inputs.chain(of_table.map(String::as_str)) {
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
