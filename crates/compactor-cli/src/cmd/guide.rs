//! `compactor guide`: the chapters of the guide.

use std::fmt::Write;
use std::process::ExitCode;

use crate::output::print;

/// Print a chapter of the guide, or list the chapters.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  The chapters:
    compactor guide

  One of them:
    compactor guide purging | less")]
pub struct Args {
    /// Chapter to print, as Markdown. Default: a list of them.
    #[arg(value_enum)]
    chapter: Option<Chapter>,
}

/// A chapter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Chapter {
    /// Merging, compacting, loading outputs into a node, memory, exit codes.
    Operating,
    /// Conditions under which tombstones and expired data are dropped.
    Purging,
    /// SSTable versions, compressors, partitioners; differences from Cassandra's output.
    Formats,
    /// Direct, buffered and other modes, and their effect on reads.
    IoModes,
    /// Choosing a compaction strategy: plans and simulations.
    Strategies,
    /// Experiments on your disk, with recorded results.
    Lab,
    /// Fields of `--format json`, for scripts.
    Json,
    /// The library: tables, rows, writing SSTables.
    Library,
}

impl Chapter {
    fn text(self) -> &'static str {
        match self {
            Chapter::Operating => include_str!("../../docs/operating.md"),
            Chapter::Purging => include_str!("../../docs/purging.md"),
            Chapter::Formats => include_str!("../../docs/formats.md"),
            Chapter::IoModes => include_str!("../../docs/io-modes.md"),
            Chapter::Strategies => include_str!("../../docs/strategies.md"),
            Chapter::Lab => include_str!("../../docs/lab.md"),
            Chapter::Json => include_str!("../../docs/json.md"),
            Chapter::Library => include_str!("../../docs/library.md"),
        }
    }
}

/// Runs the command.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    use clap::ValueEnum;
    if let Some(chapter) = args.chapter {
        return print(chapter.text());
    }
    let mut list = String::new();
    for chapter in Chapter::value_variants() {
        if let Some(value) = chapter.to_possible_value() {
            let about = value.get_help().map(ToString::to_string);
            writeln!(
                list,
                "{:<11}{}",
                value.get_name(),
                about.unwrap_or_default()
            )?;
        }
    }
    print(&list)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use clap::ValueEnum;

    use super::*;

    /// Links of the guide and of README.md lead to files of the repository.
    #[test]
    fn links_lead_somewhere() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
        let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
        let chapters = Chapter::value_variants().iter();
        let mut texts: Vec<_> = chapters.map(|c| (docs.as_path(), c.text())).collect();
        texts.push((root.as_path(), &readme));
        let mut links = 0;
        for (directory, text) in texts {
            for link in text.split("](").skip(1) {
                let link = link.split(')').next().unwrap();
                assert!(directory.join(link).exists(), "{link}");
                links += 1;
            }
        }
        assert!(links > 10, "{links}");
    }
}
