//! Runs the command `compactor` on SSTables that a node wrote.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::files::data_files;
use crate::program;

/// The command `compactor`.
#[derive(Debug, Clone)]
pub(crate) struct Compactor {
    binary: PathBuf,
}

/// Output of a command that rewrites.
#[derive(Debug)]
pub(crate) struct Rewritten {
    pub(crate) stdout: String,
    pub(crate) data_files: Vec<PathBuf>,
}

impl Compactor {
    /// Finds the command that `COMPACTOR_BIN` names, or that was built with this program.
    pub(crate) fn find() -> Result<Self> {
        if let Some(binary) = std::env::var_os("COMPACTOR_BIN") {
            return Ok(Self {
                binary: binary.into(),
            });
        }
        let own = std::env::current_exe()?;
        let mut places = own.ancestors().skip(1).take(2);
        let found = places.find_map(|place| {
            let binary = place.join("compactor");
            binary.is_file().then_some(binary)
        });
        let binary = found.with_context(|| {
            format!(
                "there is no compactor next to {}: run cargo build -p compactor-cli, or set COMPACTOR_BIN",
                own.display()
            )
        })?;
        Ok(Self { binary })
    }

    /// Runs a command, which must succeed, and returns its standard output.
    pub(crate) fn run(&self, arguments: &[&str]) -> Result<String> {
        program::output(Command::new(&self.binary).args(arguments))
            .with_context(|| arguments.join(" "))
    }

    /// Merges some or all SSTables of a table; the output must be sound.
    pub(crate) fn merge(&self, inputs: &[&str], output: &Path) -> Result<()> {
        let purging = ["--complete", "--gc-grace-seconds", "0", "--verify"];
        self.rewrite("merge", inputs, output, &purging).map(drop)
    }

    /// Rewrites SSTables, or those in a directory; the outputs must be sound.
    pub(crate) fn rewrite(
        &self,
        command: &str,
        inputs: &[&str],
        output: &Path,
        options: &[&str],
    ) -> Result<Rewritten> {
        let place = text(output);
        let mut arguments = vec![command];
        arguments.extend(inputs);
        arguments.extend(["--output", &place, "--progress", "none"]);
        arguments.extend(options);
        let stdout = self.run(&arguments)?;
        let data_files = data_files(output)?;
        for data in &data_files {
            self.run(&["verify", &text(data)])
                .with_context(|| format!("output of {command}"))?;
        }
        Ok(Rewritten { stdout, data_files })
    }

    /// Whether two SSTables hold the same rows, as `dump` prints them.
    pub(crate) fn has_same_rows(&self, one: &Path, other: &Path) -> Result<bool> {
        let rows = |data: &Path| {
            let dumped = self.run(&["dump", &text(data), "--raw-timestamps", "--now", "0"])?;
            let lines = dumped.lines().map(serde_json::from_str);
            let mut partitions = lines.collect::<Result<Vec<Value>, _>>()?;
            partitions.iter_mut().for_each(remove_positions);
            anyhow::Ok(partitions)
        };
        Ok(rows(one)? == rows(other)?)
    }

    /// Runs every command that must accept a directory of a node's SSTables; returns the failures. `schema` is the
    /// schema of a view with its base table.
    pub(crate) fn try_everything(
        &self,
        directory: &Path,
        schema: Option<&Path>,
        place: &Path,
    ) -> Result<Vec<String>> {
        if place.exists() {
            fs::remove_dir_all(place)?;
        }
        let input = text(directory);
        let mut failures = Vec::new();
        let mut note = |result: Result<()>| failures.extend(result.err().map(|e| format!("{e:#}")));
        for command in ["verify", "metadata", "dump"] {
            note(self.run(&[command, &input]).map(drop));
        }
        let rewrites: [(&str, &[&str]); 6] = [
            ("merge", &["--complete", "--verify"]),
            ("compact", &["--complete", "--major"]),
            (
                "compact",
                &["--complete", "--strategy", "SizeTieredCompactionStrategy"],
            ),
            (
                "upgrade",
                &["--compression", "lz4", "--chunk-length", "4KiB"],
            ),
            ("split", &["--size", "16KiB"]),
            ("scrub", &[]),
        ];
        for (n, (command, options)) in rewrites.into_iter().enumerate() {
            let output = place.join(n.to_string());
            let schema = schema.filter(|_| options.contains(&"--complete")).map(text);
            let schema = schema.iter().flat_map(|file| ["--schema", file]);
            let options: Vec<&str> = options.iter().copied().chain(schema).collect();
            let done = self.rewrite(command, &[&input], &output, &options);
            note(done.map(drop));
        }
        Ok(failures)
    }
}

/// Removes positions: they depend on the lengths of times, which are written as differences to the least one.
fn remove_positions(dumped: &mut Value) {
    match dumped {
        Value::Object(fields) => {
            fields.remove("position");
            fields.values_mut().for_each(remove_positions);
        }
        Value::Array(elements) => elements.iter_mut().for_each(remove_positions),
        _ => {}
    }
}

pub(crate) fn text(path: &Path) -> String {
    path.display().to_string()
}
