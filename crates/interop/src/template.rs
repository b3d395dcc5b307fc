//! Lines of text with loops and formulas, which replace many similar lines.
//!
//! | Part of a line | Meaning |
//! |---|---|
//! | `for V in A..B step S:` | the rest of the line, or the deeper lines below it, with each of the numbers for `$V` |
//! | `for N, V in [X Y]:` | the same with each of these words, and its index for `$N` |
//! | `let V = TEXT` | below, `$V` stands for this text |
//! | `$V` | the value of a name; other names remain |
//! | `$(…)` | a number that is computed |
//! | `$hex(SEED, BYTES)` | digits of bytes that do not compress |
//! | `$words(SEED, LENGTH)` | text that compresses |

use compactor_testkit::Random;

/// Name in a template, and its current value.
pub(crate) type Named = (String, String);

/// Passes each line to `add`, in order, with values for names and formulas.
pub(crate) fn expand(mut lines: &[&str], known: &[Named], add: &mut dyn FnMut(&str)) {
    let mut known = known.to_vec();
    let depth = |line: &str| line.len() - line.trim_start().len();
    while let Some((first, others)) = lines.split_first() {
        lines = others;
        let line = first.trim_start();
        if let Some((name, text)) = line.strip_prefix("let ").and_then(|l| l.split_once(" = ")) {
            known.push((name.to_owned(), fill(text, &known)));
            continue;
        }
        let Some(repeated) = line.strip_prefix("for ") else {
            add(&fill(line, &known));
            continue;
        };
        let (ranges, rest) = repeated.split_once(':').expect("a colon after ranges");
        let deeper = others
            .iter()
            .take_while(|other| depth(other) > depth(first));
        let (block, others) = others.split_at(deeper.count());
        lines = others;
        assert!(
            rest.is_empty() != block.is_empty(),
            "{line:?} repeats either the rest of the line or deeper lines"
        );
        let repeated = if rest.is_empty() { block } else { &[rest] };
        repeat(ranges, repeated, &known, add);
    }
}

fn repeat(ranges: &str, lines: &[&str], known: &[Named], add: &mut dyn FnMut(&str)) {
    if ranges.is_empty() {
        return expand(lines, known, add);
    }
    let (range, inner) = ranges.split_once(" for ").unwrap_or((ranges, ""));
    let (names, range) = range.split_once(" in ").expect("names and a range");
    let values = values(&fill(range, known));
    assert!(!values.is_empty(), "{range:?} has no values");
    for (place, value) in values.into_iter().enumerate() {
        // The name of the index, if there is one, comes first.
        let named = names.rsplit(", ").map(str::to_owned);
        let named = named.zip([value, place.to_string()]);
        let known: Vec<Named> = known.iter().cloned().chain(named).collect();
        repeat(inner, lines, &known, add);
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
        .step_by(usize::try_from(number(step)).expect("a step above 0"))
        .map(|n| n.to_string())
        .collect()
}

pub(crate) fn number(word: &str) -> i64 {
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
            "hex" => {
                let [seed, bytes] = formula.two_numbers();
                Random::new(seed as u64).hex(bytes as usize)
            }
            "words" => {
                let [seed, length] = formula.two_numbers();
                words(seed as u32, length as usize)
            }
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
        let named = self.known.iter().rev().find(|(known, _)| known == name);
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

    fn two_numbers(&mut self) -> [i64; 2] {
        self.expect("(");
        let first = self.sum();
        self.expect(", ");
        let second = self.sum();
        self.expect(")");
        [first, second]
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
            } else if self.takes(" / ") {
                product /= self.factor();
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

/// Text that compresses about as well as natural language.
pub(crate) fn words(seed: u32, len: usize) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_repeat_and_formulas_are_computed() {
        let lines = [
            "for a in [x 'y z] for b in 1..$(2 + 2) step 2: $a$b",
            "for n, a in [5 7]:",
            "    $n $a",
            "    for c in $a..8: $(2 * (c - n) % 5 + c / 4) $other$hex(c + 1, 2)$known",
            "let end = end $words(1, 3)",
            "$end",
        ];
        let known = [("known".to_owned(), "!".to_owned())];
        let mut found = Vec::new();
        expand(&lines, &known, &mut |line| found.push(line.to_owned()));
        let line = |c: u64, value| format!("{value} $other{}!", Random::new(c + 1).hex(2));
        let expected = [
            "x1",
            "x3",
            "'y1",
            "'y3",
            "z1",
            "z3",
            "0 5",
            &line(5, 1),
            &line(6, 3),
            &line(7, 5),
            "1 7",
            &line(7, 3),
            &format!("end {}", words(1, 3)),
        ];
        assert_eq!(found, expected);
    }
}
