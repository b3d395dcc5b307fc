//! Options of the commands that purge: what else the table has, and how old a deletion must be.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use compactor::catalog::{self, Catalog};
use compactor::{Error, MergeRequest, Scope, live_directory};

use crate::io_args::IoArgs;
use crate::numbers::{GC_GRACE_SECONDS, moment, moment_or_before_1970, within};
use crate::output_form::OutputForm;

/// What may be purged.
#[derive(Debug, clap::Args)]
pub struct PurgeArgs {
    /// The inputs are all that the table has on this node, so tombstones may be purged: a snapshot, which
    /// is flushed first, or the directory of a node that was drained and stopped. Refused where a running
    /// process has SSTables of the directory open, or is a node whose open files this user may not see.
    #[arg(long, help_heading = "Purging", conflicts_with = "overlapping")]
    complete: bool,

    /// An SSTable, or a directory of them, that the table has besides the inputs. Repeat it for all
    /// of them: tombstones that may shadow data in these stay.
    #[arg(long, help_heading = "Purging", value_name = "TABLE_DIR|Data.db")]
    overlapping: Vec<PathBuf>,

    /// Seconds that tombstones must live. Default: schema.cql's. Without either nothing is purged, and
    /// --complete and --overlapping are refused.
    #[arg(long, help_heading = "Purging", value_name = "N",
        conflicts_with_all = ["gc_before", "no_purge"],
        value_parser = within(GC_GRACE_SECONDS), allow_negative_numbers = true)]
    gc_grace_seconds: Option<u32>,

    /// Purge tombstones with a local deletion time before this, in seconds since 1970.
    #[arg(
        long,
        help_heading = "Purging",
        value_name = "EPOCH",
        conflicts_with = "no_purge",
        value_parser = moment_or_before_1970,
        allow_negative_numbers = true
    )]
    gc_before: Option<i64>,

    /// Keep every tombstone.
    #[arg(long, help_heading = "Purging")]
    no_purge: bool,

    /// Keep the tombstones of inputs that are not repaired, which replicas may not have yet. Default:
    /// what the table's compaction options in schema.cql say, otherwise false.
    #[arg(long, help_heading = "Purging", value_name = "true|false", num_args = 0..=1,
        require_equals = true, default_missing_value = "true")]
    only_purge_repaired_tombstones: Option<bool>,

    /// Time at which TTL expiry is evaluated, in seconds since 1970. Default: the clock.
    #[arg(
        long,
        help_heading = "Purging",
        value_name = "EPOCH",
        value_parser = moment,
        allow_negative_numbers = true
    )]
    now: Option<i64>,
}

impl PurgeArgs {
    /// A request to merge what the catalog has, after the options and the schema, with what a person
    /// should know of the choices.
    ///
    /// # Errors
    /// What must not be purged, or an output that the schema does not allow.
    pub fn request(
        &self,
        catalog: &Catalog,
        output: &Path,
        form: &OutputForm,
        io: &IoArgs,
    ) -> anyhow::Result<(MergeRequest, Vec<String>)> {
        let mut notes = Vec::new();
        let mut request = catalog.merge_request(output);
        let table = catalog.schema.as_ref().map(|(_, table)| table);
        request.now_s = self.now.unwrap_or_else(now_s);
        request.scope = self.scope(catalog, &mut notes)?;
        if request.scope != Scope::Unknown && !self.no_purge {
            live_directory::refuse_purge_while_live(&catalog.sstables)?;
        }
        request.gc_before_s = self.gc_before_s(catalog, &request)?;
        if request.scope == Scope::Unknown && !self.no_purge {
            notes.push(
                "every tombstone is kept, since other SSTables of the table may need them: say \
                 --complete if there are none, or name them with --overlapping"
                    .to_owned(),
            );
        }
        request.version = form.sstable_version;
        request.format = form.sstable_format();
        request.compression = form.compression(catalog)?;
        if let Some(only_repaired) = self.only_purge_repaired_tombstones {
            request.only_purge_repaired = only_repaired;
        }
        if let Some(table) = table.filter(|t| !t.indexes.is_empty()) {
            notes.push(format!(
                "table {} has {}; Cassandra rebuilds what belongs to the output when it loads it",
                table.name,
                match table.indexes.len() {
                    1 => "1 secondary index".to_owned(),
                    indexes => format!("{indexes} secondary indexes"),
                }
            ));
        }
        io.apply(&mut request);
        Ok((request, notes))
    }

    fn scope(&self, catalog: &Catalog, notes: &mut Vec<String>) -> anyhow::Result<Scope> {
        if self.complete {
            if let [first, ..] = &catalog.siblings[..] {
                let more = match catalog.siblings.len() - 1 {
                    0 => "is".to_owned(),
                    more => format!("and {more} more are"),
                };
                return Err(Error::refused(format!(
                    "--complete says that the inputs are all that the table has, but {} {more} in the \
                     same directory. Name the directory to merge all, or name the others with \
                     --overlapping",
                    first.display(),
                ))
                .into());
            }
            notes.extend(catalog::outside_snapshot(&catalog.sstables));
            return Ok(Scope::Complete);
        }
        if self.overlapping.is_empty() {
            return Ok(Scope::Unknown);
        }
        let others = catalog::find_sstables(&self.overlapping)?.sstables;
        let named = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
        let inputs: HashSet<PathBuf> = catalog.sstables.iter().map(named).collect();
        // Naming the table's whole directory is convenient: inputs do not overlap themselves.
        let others: Vec<PathBuf> = others
            .into_iter()
            .filter(|p| !inputs.contains(&named(p)))
            .collect();
        let known: HashSet<PathBuf> = others.iter().map(named).collect();
        if let Some(left_out) = catalog.siblings.iter().find(|p| !known.contains(&named(p))) {
            return Err(Error::refused(format!(
                "--overlapping must name every other SSTable of the table, but {} is in the directory of the \
                 inputs and is not named",
                left_out.display()
            ))
            .into());
        }
        Ok(Scope::Overlapping(others))
    }

    fn gc_before_s(
        &self,
        catalog: &Catalog,
        request: &MergeRequest,
    ) -> anyhow::Result<Option<i64>> {
        if self.no_purge {
            return Ok(None);
        }
        if let Some(gc_before) = self.gc_before {
            return Ok(Some(gc_before));
        }
        let grace = catalog.gc_grace_seconds(self.gc_grace_seconds);
        if grace.is_err() && request.scope == Scope::Unknown {
            return Ok(None);
        }
        Ok(Some(request.now_s - i64::from(grace?)))
    }
}

fn now_s() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| d.as_secs() as i64)
}
