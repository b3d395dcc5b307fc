//! Options of the commands that rewrite each SSTable on its own, into another form.

use crate::flags::Format;
use crate::io_args::IoArgs;
use crate::output_form::OutputFormArgs;
use crate::progress::ProgressMode;

/// Options after those that are each command's own.
#[derive(Debug, clap::Args)]
pub struct RewriteArgs {
    #[command(flatten)]
    pub output_form: OutputFormArgs,

    #[command(flatten)]
    pub io: IoArgs,

    /// Verify each output before it is published, as `compactor verify` does.
    #[arg(long, help_heading = "Checking")]
    pub verify: bool,

    /// Open the inputs, print the plan, and write nothing.
    #[arg(long)]
    pub dry_run: bool,

    /// How progress is shown on stderr.
    #[arg(long, value_enum, default_value = "auto")]
    pub progress: ProgressMode,

    /// How the summary is printed on stdout.
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
}
