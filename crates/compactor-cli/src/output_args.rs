//! Options of the commands whose output is loaded as a whole: where it goes.

use std::path::PathBuf;

use compactor::output_directory::ExistingOutput;

/// Where outputs go.
#[derive(Debug, clap::Args)]
pub struct OutputArgs {
    /// Directory of the outputs; made if missing. Not one that holds SSTables.
    #[arg(long, value_name = "DIR")]
    pub output: PathBuf,

    /// Replace the SSTables that the output directory holds already: they go in one step when the new ones
    /// are complete, all of them or none, even if the run is killed. Other files there stay.
    #[arg(long, help_heading = "Output")]
    replace_output: bool,
}

impl OutputArgs {
    /// What is to become of SSTables that are there.
    pub fn existing(&self) -> ExistingOutput {
        match self.replace_output {
            true => ExistingOutput::Replace,
            false => ExistingOutput::Refuse,
        }
    }
}
