//! `compactor plan`: the compactions that a node would start now.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use compactor::Table;
use compactor::table::plan::{PlannedKind, PlannedTask, TablePlan};
use compactor_io::raise_open_files_limit;

use super::dump::now_s;
use crate::exit_code;
use crate::flags::{ByteSize, Format};
use crate::numbers::{GC_GRACE_SECONDS, moment, within};
use crate::output::{print, say, say_notes};
use crate::strategy_args::StrategyArgs;
use crate::text_table::counted;

/// Show which compactions a node would start now, and why.
///
/// The rules are those of Cassandra 5.0 and 6.0 for SizeTieredCompactionStrategy, LeveledCompactionStrategy,
/// TimeWindowCompactionStrategy and UnifiedCompactionStrategy, with the strategy and options of schema.cql, or with
/// others, to see what they would do. LevelCountCompactionStrategy, which Cassandra does not have, keeps a fixed
/// number of levels. Reads metadata only, and writes nothing.
///
/// The tasks are those that can run at once, in the order in which a node starts them; what their outputs would cause
/// is not planned. SSTables of several data directories are planned separately, as a node compacts them. The plan assumes
/// that the node owns the whole ring and has been running for long, and that no SSTable is hot, since files do not record
/// reads.
///
/// A damaged SSTable is named and left out, as a node leaves out one that it has marked suspect; the exit code is 3. It
/// is 2 if those left out are only not supported.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  What the node would do next with this table:
    compactor plan /data/ks/t-1c6a...

  What leveled compaction with another fan-out would do with it:
    compactor plan /data/ks/t-1c6a... --strategy leveled --fanout-size 4")]
pub struct Args {
    /// A table or snapshot directory, or Data.db files.
    #[arg(required = true, value_name = "TABLE_DIR|SNAPSHOT_DIR|Data.db")]
    inputs: Vec<PathBuf>,

    /// The table's schema as CQL. Default: schema.cql in the directory of the inputs.
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,

    /// Age in seconds from which tombstones count as droppable. Default: schema.cql's, otherwise 864000.
    #[arg(long, value_name = "N", value_parser = within(GC_GRACE_SECONDS))]
    gc_grace_seconds: Option<u32>,

    /// Time of the plan, in seconds since 1970. Default: the clock.
    #[arg(long, value_name = "EPOCH", value_parser = moment)]
    now: Option<i64>,

    /// How the plan is printed.
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,

    // Last: its heading of the help would go on to the options after it.
    #[command(flatten)]
    strategy: StrategyArgs,
}

/// Runs the command.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let _ = raise_open_files_limit();
    let table = Table::open_all(&args.inputs, args.schema.as_deref())?;
    say_notes(table.notes());
    let mut planning = table.plan().strategy(args.strategy.choice(&table)?);
    if let Some(seconds) = args.gc_grace_seconds {
        planning = planning.gc_grace_s(seconds.into());
    }
    let plan = planning.run(args.now.unwrap_or_else(now_s).saturating_mul(1000))?;
    for sstable in &plan.unreadable {
        say(format_args!("compactor: {}", sstable.error));
    }
    print(&match args.format {
        Format::Text => text(&plan)?,
        Format::Json => serde_json::to_string_pretty(&plan)?,
    })?;
    Ok(exit_code::of_left_out(&plan.unreadable))
}

fn text(plan: &TablePlan) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    writeln!(
        text,
        "{} of Cassandra {}, {} of {}",
        plan.strategy,
        plan.release,
        counted(plan.sstables as u64, "SSTable"),
        ByteSize(plan.bytes)
    )?;
    for (number, task) in plan.tasks.iter().enumerate() {
        write_task(&mut text, number + 1, task)?;
    }
    let nothing = if plan.tasks.is_empty() {
        "nothing to compact"
    } else {
        "no more"
    };
    for idle in &plan.idle {
        let place = place(idle.directory.as_deref());
        writeln!(text, "{}{place}: {nothing}: {}", idle.repair, idle.reason)?;
    }
    writeln!(
        text,
        "pending tasks, as `nodetool compactionstats` estimates them: {}",
        plan.pending_tasks
    )?;
    if !plan.unreadable.is_empty() {
        let them = counted(plan.unreadable.len() as u64, "SSTable");
        writeln!(text, "left out, since unreadable: {them}")?;
    }
    Ok(text)
}

/// Names the data directory, if there are several.
fn place(directory: Option<&Path>) -> String {
    directory.map_or_else(String::new, |path| format!(" in {}", path.display()))
}

fn write_task(text: &mut String, number: usize, task: &PlannedTask) -> std::fmt::Result {
    let inputs = counted(task.inputs.len() as u64, "SSTable");
    let bytes = ByteSize(task.bytes);
    let place = place(task.directory.as_deref());
    write!(text, "{number}: {}{place}: ", task.repair)?;
    match task.kind {
        PlannedKind::Compact => write!(text, "merge {inputs} of {bytes} to level {}", task.level)?,
        PlannedKind::Tombstones => write!(text, "rewrite {inputs} of {bytes} for its tombstones")?,
        PlannedKind::LevelOnly => write!(text, "move {inputs} of {bytes} to level {}", task.level)?,
        PlannedKind::DropExpired => write!(text, "drop {inputs} of {bytes}")?,
        _ => write!(text, "change the repair state of {inputs}")?,
    }
    if let Some(size) = task.max_sstable_bytes {
        write!(text, ", outputs of {}", ByteSize(size))?;
    }
    if task.shards > 1 {
        write!(text, ", {} shards", task.shards)?;
    }
    writeln!(text, " ({})", task.reason)?;
    for input in &task.inputs {
        let name = input.data_path.file_name().map(Path::new);
        let name = name.unwrap_or(&input.data_path).display();
        let expired = if input.is_expired { ", expired" } else { "" };
        writeln!(
            text,
            "     {name}  L{} {}{expired}",
            input.level,
            ByteSize(input.bytes)
        )?;
    }
    Ok(())
}
