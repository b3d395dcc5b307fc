//! Report of an error on stderr, with the remedy, and in JSON on stdout.

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::atomic::Ordering;

use compactor::ErrorKind;
use compactor::verify::data_digest::digest_of_data;
use compactor_sstable::Component;
use compactor_sstable::descriptor::Descriptor;

use crate::exit_code::{INTERRUPTED, USAGE, of};
use crate::failure::Failure;
use crate::interrupt;
use crate::output::say;

/// Kind of output of a command; selects the advice on what an error left behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writes {
    /// The command only reads.
    Nothing,
    /// SSTables made from the inputs, and no larger than these.
    Rewritten,
    /// As `Rewritten`, but some outputs were published before a later one failed.
    InParts,
    /// SSTables that are generated, without inputs.
    Generated,
}

impl Writes {
    /// Kind of output of a command that publishes one output after the other; `any` if one was published.
    pub fn of_several(any: bool) -> Writes {
        if any {
            Writes::InParts
        } else {
            Writes::Rewritten
        }
    }
}

/// Prints the error on stderr, with a remedy if there is one, and chooses the exit code. With `as_json`, stdout gets
/// it as well.
pub fn report(error: &anyhow::Error, writes: Writes, as_json: bool) -> ExitCode {
    let ours = error.downcast_ref::<compactor::Error>();
    let code = ours.map_or(1, of);
    let message = match writes {
        _ if code != INTERRUPTED => format!("{error:#}"),
        Writes::Nothing => "interrupted".to_owned(),
        _ => "interrupted; nothing was written".to_owned(),
    };
    say(format_args!("compactor: {message}"));
    let advice = ours.map_or_else(Vec::new, |error| advice(error, writes));
    for line in &advice {
        say(format_args!("  {line}"));
    }
    if as_json {
        Failure::new(code, message, advice, ours).print();
    }
    ExitCode::from(code)
}

/// Prints errors in the options, or the requested help, and chooses the exit code. Stdout gets the error as well if
/// some option asks for JSON.
pub fn of_usage(error: &clap::Error) -> ExitCode {
    let printed = error.print();
    if !error.use_stderr() {
        return match printed {
            Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
                say(format_args!("compactor: write to stdout: {e}"));
                ExitCode::FAILURE
            }
            _ => ExitCode::SUCCESS,
        };
    }
    if asks_for_json(std::env::args_os()) {
        Failure::of_usage(USAGE, &error.to_string()).print();
    }
    ExitCode::from(USAGE)
}

/// Whether `--format json` is among options that could not be parsed.
fn asks_for_json(arguments: impl Iterator<Item = OsString>) -> bool {
    let options: Vec<OsString> = arguments.take_while(|argument| argument != "--").collect();
    let in_two = options.windows(2).any(|two| two == ["--format", "json"]);
    in_two || options.iter().any(|option| option == "--format=json")
}

/// Prints the remedy of an error, if there is one.
pub fn say_remedy(error: &compactor::Error, writes: Writes) {
    for line in advice(error, writes) {
        say(format_args!("  {line}"));
    }
}

/// Prints errors, each remedy once. `then` is the error that is printed after them, if there is one.
pub fn say_each<'e>(
    errors: impl IntoIterator<Item = &'e compactor::Error>,
    then: Option<&'e compactor::Error>,
    writes: Writes,
) {
    let mut errors = errors.into_iter().peekable();
    while let Some(error) = errors.next() {
        say(format_args!("compactor: {error}"));
        say_remedy_before(error, errors.peek().copied().or(then), writes);
    }
}

/// As [`say_remedy`], but without a remedy that the next error has too, which is printed after this one.
fn say_remedy_before(error: &compactor::Error, next: Option<&compactor::Error>, writes: Writes) {
    let is_repeated = next.is_some_and(|next| remedy(next, writes) == remedy(error, writes));
    if !is_repeated {
        say_remedy(error, writes);
    } else if let Some(verdict) = of_digest(error) {
        say(format_args!("  {verdict}"));
    }
}

/// Returns which of two contradicting files is faulty, and the remedy.
fn advice(error: &compactor::Error, writes: Writes) -> Vec<String> {
    let rewrites = matches!(writes, Writes::Rewritten | Writes::InParts);
    let verdict = rewrites.then(|| of_digest(error)).flatten();
    let remedy = remedy(error, writes).map(str::to_owned);
    verdict.into_iter().chain(remedy).collect()
}

/// Whether `Data.db` is as it was written, if that adds to the error: where two
/// files do not fit one another, the one that was read second is not always the damaged one.
fn of_digest(error: &compactor::Error) -> Option<String> {
    let (path, structure) = (error.path()?, error.corruption()?.structure);
    let interrupted = interrupt::flag().ok()?;
    let digest = digest_of_data(path, || interrupted.load(Ordering::Relaxed)).ok()??;
    let is_data = path == digest.data_path;
    let data = digest.data_path.display();
    match (digest.found == digest.stated, is_data) {
        (false, false) => Some(format!(
            "{data} is damaged as well, or is the only damaged file: its CRC32 is {}, but Digest.crc32 has \
             {}.",
            digest.found, digest.stated
        )),
        (true, true) if structure.starts_with("chunk") => Some(format!(
            "{data} is as it was written (its CRC32 is {}, as Digest.crc32 says): CompressionInfo.db \
             or CRC.db is damaged instead.",
            digest.found
        )),
        _ => None,
    }
}

/// Repair of an SSTable, by its damaged components.
enum Repair {
    /// Its remaining rows are salvaged.
    Salvage,
    /// All rows are intact; the sidecar components are rebuilt.
    Rebuild,
    /// The file is required and cannot be rebuilt.
    Restore,
    /// The file could be rebuilt, but not without another one, which is missing.
    RestoreSidecars,
}

/// Whether `Statistics.db` of the SSTable exists.
fn has_statistics(error: &compactor::Error) -> bool {
    let file = error.path().and_then(|path| Descriptor::parse(path).ok());
    file.is_none_or(|file| file.descriptor.path(Component::Statistics).exists())
}

impl Repair {
    fn of(error: &compactor::Error) -> Repair {
        let component = error
            .path()
            .and_then(|path| Descriptor::parse(path).ok())
            .and_then(|file| file.component);
        // One that was parsed and contradicts the data can be made anew.
        let contradicts = error.corruption().is_some_and(|c| {
            c.structure == "stats" || (c.structure == "component" && c.expected.contains("stats."))
        });
        let is_gone = error.corruption().is_some_and(|c| c.structure == "sstable");
        match component {
            Some(Component::Data) if is_gone => Repair::Restore,
            None | Some(Component::Data | Component::Crc) => Repair::Salvage,
            Some(Component::Statistics) if contradicts => Repair::Rebuild,
            Some(Component::Statistics | Component::CompressionInfo) => Repair::Restore,
            Some(_) if !has_statistics(error) => Repair::RestoreSidecars,
            Some(_) => Repair::Rebuild,
        }
    }
}

fn remedy(error: &compactor::Error, writes: Writes) -> Option<&'static str> {
    Some(match error.kind() {
        ErrorKind::Corrupt => match Repair::of(error) {
            Repair::Salvage => {
                "`compactor verify` lists all damage. `compactor scrub` writes what can be read into a new \
                 SSTable and lists what is lost: `nodetool repair -full` brings that back from another replica. \
                 Or take this SSTable from an older snapshot or a backup, or leave it out."
            }
            Repair::Rebuild => {
                "`compactor verify` lists all damage. If Data.db is sound, `compactor scrub` makes the \
                 other files anew and loses nothing."
            }
            Repair::RestoreSidecars => {
                "Statistics.db of this SSTable is missing as well, and nothing can be read without it: take all files \
                 of the SSTable from where Data.db was copied. Without them, leave it out: `nodetool repair -full` \
                 brings its rows back from another replica."
            }
            Repair::Restore => {
                "`compactor verify` lists all damage. No file can be read without this one: take it from a \
                 snapshot or a backup of this SSTable. Without one, leave the SSTable out: `nodetool repair \
                 -full` brings its rows back from another replica."
            }
        },
        ErrorKind::NoSpace if writes == Writes::Nothing => return None,
        ErrorKind::NoSpace if error.is_file_too_large() && writes == Writes::InParts => {
            "A file would have passed the limit on file sizes, of the process (`ulimit -f`) or of the \
             file system. Complete outputs are in place, and nothing else was left behind."
        }
        ErrorKind::NoSpace if error.is_file_too_large() => {
            "A file would have passed the limit on file sizes, of the process (`ulimit -f`) or of the \
             file system. Nothing was left behind."
        }
        ErrorKind::NoSpace if writes == Writes::InParts => {
            "Complete outputs are in place, and nothing else was left behind. An output needs as much room as \
             its inputs have, and more if it is compressed less."
        }
        ErrorKind::NoSpace if writes == Writes::Rewritten => {
            "An output needs as much room as its inputs have, more if it is compressed less, and as much again \
             in passes. Nothing was left behind."
        }
        // Not an SSTable, but a result of which others may be in place.
        ErrorKind::NoSpace
            if error
                .path()
                .is_none_or(|path| Descriptor::parse(path).is_err()) =>
        {
            return None;
        }
        ErrorKind::NoSpace => "Nothing was left behind.",
        ErrorKind::Io if error.is_already_there() => {
            "Another program created a file there in the meantime. Nothing was replaced, and nothing was \
             left behind: run again, with another output directory if that program keeps writing there."
        }
        ErrorKind::Internal => "This is a bug in compactor; please report it.",
        _ => return None,
    })
}
