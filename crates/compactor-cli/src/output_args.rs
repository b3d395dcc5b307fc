//! Options of the commands whose outputs are loaded as a whole: where they go, and how they get from there to
//! a node.

use std::fmt::Write;
use std::path::PathBuf;

use compactor::catalog::Catalog;
use compactor::{ExistingOutput, NodeCommand, OutputLayout};
use serde::Serialize;

/// Where outputs go.
#[derive(Debug, clap::Args)]
pub struct OutputArgs {
    /// Directory of the outputs, in which they go to KEYSPACE/TABLE, where `nodetool import` finds them, if
    /// these are known: from the inputs' directory KEYSPACE/TABLE-ID or from the schema. Made if missing.
    /// Not one that holds SSTables.
    #[arg(long, value_name = "DIR")]
    output: PathBuf,

    /// Write into the output directory itself, not into KEYSPACE/TABLE below it.
    #[arg(long, help_heading = "Output")]
    flat: bool,

    /// Replace the SSTables that the output directory holds already: they go in one step when the new ones
    /// are complete, all of them or none, even if the run is killed. Other files there stay.
    #[arg(long, help_heading = "Output")]
    replace_output: bool,
}

impl OutputArgs {
    /// Where outputs of these SSTables go.
    ///
    /// # Errors
    /// A refusal of a directory that is no place for them.
    pub fn layout(&self, catalog: &Catalog) -> anyhow::Result<OutputLayout> {
        let layout = OutputLayout::of(catalog, &self.output, self.flat);
        layout.check(catalog)?;
        Ok(layout)
    }

    /// What is to become of SSTables that are there.
    pub fn existing(&self) -> ExistingOutput {
        match self.replace_output {
            true => ExistingOutput::Replace,
            false => ExistingOutput::Refuse,
        }
    }
}

/// How outputs get to a node, if there are any.
pub struct WayBack {
    /// Empty where the table is not known or its directory is not one that a node imports from.
    commands: Vec<NodeCommand>,
    hint: Option<String>,
}

impl WayBack {
    /// For outputs that have been laid out so.
    pub fn of(layout: &OutputLayout, has_outputs: bool) -> WayBack {
        let commands = match has_outputs {
            true => NodeCommand::for_outputs(layout),
            false => Vec::new(),
        };
        let hint = match (has_outputs, layout.table()) {
            (true, None) => Some(format!(
                "to import it, name its table with --schema: Cassandra 5.0 and later import only from a \
                 directory .../KEYSPACE/TABLE, which {} is not",
                layout.directory().display()
            )),
            _ => None,
        };
        WayBack { commands, hint }
    }

    /// A report in JSON, with the commands.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn json(&self, report: &impl Serialize) -> anyhow::Result<String> {
        #[derive(Serialize)]
        struct WithCommands<'a, R> {
            #[serde(flatten)]
            report: &'a R,
            commands: &'a [NodeCommand],
        }
        Ok(serde_json::to_string_pretty(&WithCommands {
            report,
            commands: &self.commands,
        })?)
    }

    /// The last block of a summary in text.
    ///
    /// # Errors
    /// Those of the formatter.
    pub fn show(&self, text: &mut String) -> std::fmt::Result {
        for command in &self.commands {
            let what = match command.purpose {
                "swap" => "to put it in the place of its inputs, with the node stopped",
                "import" => "to load it into the running node, which moves the files",
                _ => "to verify it there, with the node stopped",
            };
            writeln!(text, "{what}:\n  {}", command.shell_line())?;
        }
        match &self.hint {
            Some(hint) => writeln!(text, "{hint}"),
            None => Ok(()),
        }
    }
}
