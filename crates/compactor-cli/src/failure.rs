//! Failures as JSON on stdout, with `--format json`.

use compactor::ErrorKind;
use compactor_sstable::Corruption;
use serde::Serialize;

use crate::output::print;

/// Output on stdout in place of a result.
#[derive(Debug, Serialize)]
struct Document<'a> {
    error: &'a Failure<'a>,
}

/// Reason why there is no result.
#[derive(Debug, Serialize)]
pub struct Failure<'a> {
    /// See [`crate::exit_code`].
    exit_code: u8,
    kind: &'static str,
    /// Error message, the same as on stderr.
    message: String,
    /// Advice, the same as on stderr: which of two contradicting files is faulty, and the remedy.
    advice: Vec<String>,
    /// The file that the error concerns, if any. Bytes that are not UTF-8 are replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    damage: Option<Damage<'a>>,
}

/// Damaged structure of that file.
#[derive(Debug, Serialize)]
struct Damage<'a> {
    structure: &'a str,
    /// Offset in the file, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<u64>,
    /// Position in the uncompressed content of `Data.db`, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<u64>,
    expected: &'a str,
    found: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    partition: Option<&'a str>,
}

impl<'a> Failure<'a> {
    /// Describes a failure. `ours` is the error of this project that caused it, if any.
    pub fn new(
        exit_code: u8,
        message: String,
        advice: Vec<String>,
        ours: Option<&'a compactor::Error>,
    ) -> Failure<'a> {
        let damage = ours.and_then(compactor::Error::corruption);
        Failure {
            exit_code,
            kind: ours.map_or("other", |error| kind_name(error.kind())),
            message,
            advice,
            path: ours
                .and_then(compactor::Error::path)
                .map(|path| path.to_string_lossy().into_owned()),
            damage: damage.map(Damage::new),
        }
    }

    /// Describes options that could not be parsed, by what is printed about them: paragraphs, of which the
    /// first is the error.
    pub fn of_usage(exit_code: u8, printed: &str) -> Failure<'a> {
        let printed = printed.trim().trim_start_matches("error: ");
        let mut paragraphs = printed.split("\n\n").map(str::to_owned);
        Failure {
            exit_code,
            kind: "usage",
            message: paragraphs.next().unwrap_or_default(),
            advice: paragraphs.collect(),
            path: None,
            damage: None,
        }
    }

    /// Prints it on stdout, ignoring a closed pipe.
    pub fn print(&self) {
        let document = Document { error: self };
        if let Ok(text) = serde_json::to_string_pretty(&document) {
            let _ = print(&text);
        }
    }
}

impl<'a> Damage<'a> {
    fn new(damage: &'a Corruption) -> Damage<'a> {
        let is_in_content = damage.is_in_content();
        Damage {
            structure: damage.structure,
            offset: (!is_in_content).then_some(damage.offset),
            position: is_in_content.then_some(damage.offset),
            expected: &damage.expected,
            found: &damage.found,
            partition: damage.partition.as_deref(),
        }
    }
}

fn kind_name(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Corrupt => "corrupt",
        ErrorKind::Unsupported => "unsupported",
        ErrorKind::InvalidInput => "invalid_input",
        ErrorKind::Refused => "refused",
        ErrorKind::Io => "io",
        ErrorKind::NoSpace => "no_space",
        ErrorKind::Cancelled => "interrupted",
        _ => "internal",
    }
}
