//! Options of the commands whose outputs are loaded as a whole: where they go, and how they get from there to
//! a node.

use std::fmt::Write;
use std::path::PathBuf;

use compactor::ExistingOutput;
use compactor::table::NextSteps;
use serde::Serialize;

/// Output options.
#[derive(Debug, clap::Args)]
pub struct OutputArgs {
    /// Directory of the outputs; created if missing. They are written to KEYSPACE/TABLE below it, where `nodetool
    /// import` finds them, if the names are known from the inputs' directory KEYSPACE/TABLE-ID or the schema. It must
    /// hold no SSTables, unless --replace-output is given.
    #[arg(long, value_name = "DIR")]
    pub output: PathBuf,

    /// Write into the output directory itself, not into KEYSPACE/TABLE below it.
    #[arg(long, help_heading = "Output")]
    pub flat: bool,

    /// Replace the SSTables that the output directory holds already: they are exchanged in one step once the new
    /// ones are complete, all of them or none, even if the run is killed. Other files there stay.
    #[arg(long, help_heading = "Output")]
    replace_output: bool,
}

impl OutputArgs {
    /// Handling of existing SSTables in the output directory.
    pub fn existing(&self) -> ExistingOutput {
        if self.replace_output {
            ExistingOutput::Replace
        } else {
            ExistingOutput::Refuse
        }
    }
}

/// A report in JSON, with the commands that bring its outputs to a node.
///
/// # Errors
/// Errors of the serializer.
pub fn json(report: &impl Serialize, next_steps: &NextSteps) -> anyhow::Result<String> {
    #[derive(Serialize)]
    struct WithCommands<'a, R> {
        #[serde(flatten)]
        report: &'a R,
        #[serde(flatten)]
        next_steps: &'a NextSteps,
    }
    Ok(serde_json::to_string_pretty(&WithCommands {
        report,
        next_steps,
    })?)
}

/// The last block of a summary in text.
///
/// # Errors
/// Those of the formatter.
pub fn show_next_steps(next_steps: &NextSteps, text: &mut String) -> std::fmt::Result {
    for command in &next_steps.commands {
        let what = match command.purpose {
            "swap" => "to replace the inputs, with the node stopped",
            "import" => "to load it into the running node, which moves the files",
            _ => "to verify it there, with the node stopped",
        };
        writeln!(text, "{what}:\n  {}", command.shell_line())?;
    }
    match &next_steps.hint {
        Some(hint) => writeln!(text, "{hint}"),
        None => Ok(()),
    }
}
