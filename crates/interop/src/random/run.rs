//! Execution of a plan, and comparison of the results.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::json;

use super::other_commands;
use super::plan::Plan;
use crate::cassandra::{Cassandra, CompactRequest, Compacted, Table, field};
use crate::compare;
use crate::files;
use crate::findings::Finding;
use crate::ours::{self, MergeRequest};
use crate::parity::{self, Exception};

const KEYSPACE: &str = "interop_random";

/// Number of keys that the filter of an output is sized for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Filter {
    /// All expected keys.
    ForAllKeys,
    /// In Cassandra an equal share for each expected output, whatever their number
    /// (`MaxSSTableSizeWriter.sstableKeyCount`); in ours what is left of the keys.
    ForAShare,
}

/// Result of a plan.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// Differences; none if all is well.
    pub(super) differences: Vec<String>,
    /// Inputs that were written: mutations may leave nothing.
    pub(super) inputs: usize,
    /// Whether the merge left something.
    pub(super) output: bool,
    /// Whether the merge with a maximum size left several outputs.
    pub(super) divided: bool,
}

/// Runs a plan with its files in `place`, which is created.
///
/// # Errors
/// A request that fails, other than those that judge our output.
pub(super) fn run(cassandra: &mut Cassandra, plan: &Plan, place: &Path) -> Result<Outcome> {
    let table = make_table(cassandra, plan)?;
    let outcome = with_table(cassandra, plan, &table, place);
    drop_table(cassandra, &table)?;
    outcome
}

fn with_table(
    cassandra: &mut Cassandra,
    plan: &Plan,
    table: &Table,
    place: &Path,
) -> Result<Outcome> {
    cassandra.set_now(plan.now_s)?;
    let mut inputs = Vec::new();
    let mut others = Vec::new();
    let mut has_newest = false;
    let merged = plan.inputs.len().saturating_sub(plan.others);
    for n in 0..plan.inputs.len() {
        let data = write_input(cassandra, plan, table, n, place)?;
        if n < merged {
            has_newest = data.is_some();
        }
        let Some(data) = data else {
            continue;
        };
        let inputs = if n < merged { &mut inputs } else { &mut others };
        inputs.push(data);
    }
    if inputs.is_empty() {
        return Ok(Outcome::default());
    }
    others = without_copies(others, &inputs)?;
    let case = Merge {
        plan,
        table,
        inputs,
        others,
        has_newest,
    };
    let compacted = case.compact(cassandra, &place.join("cassandra"), None)?;
    let theirs = compacted.outputs.first();
    let mut differences = case.judge(cassandra, &place.join("ours"), theirs)?;
    if differences.is_empty() {
        for (n, data) in case.inputs.iter().chain(theirs).enumerate() {
            differences.extend(other_commands::of_sstable(
                cassandra,
                table,
                data,
                plan.now_s,
                &place.join("scrubbed").join(n.to_string()),
            )?);
        }
    }
    let mut divided = false;
    if let (true, true, Some(one)) = (differences.is_empty(), has_newest, theirs) {
        // Compressed outputs end at the first bytes on disk: their end must not depend on how well an encoder
        // compresses.
        let is_compressed = files::component(one, "CompressionInfo.db").exists();
        let size = if is_compressed {
            1
        } else {
            1 + plan.seed % 4096
        };
        (differences, divided) = case.judge_sizes(cassandra, place, size)?;
    }
    Ok(Outcome {
        differences,
        inputs: case.inputs.len(),
        output: theirs.is_some(),
        divided,
    })
}

/// Creates the table of a plan, in no schema.
pub(crate) fn make_table(cassandra: &mut Cassandra, plan: &Plan) -> Result<Table> {
    cassandra.offline_tables += 1;
    let table = Table::new(KEYSPACE, &format!("t{}", cassandra.offline_tables));
    let fields = json!({
        "schema": plan.schema, "provided": plan.provided, "strict_liveness": plan.strict_liveness,
    });
    cassandra.ask("offline_table", &table, fields)?;
    Ok(table)
}

/// Drops a table of [`make_table`].
pub(crate) fn drop_table(cassandra: &mut Cassandra, table: &Table) -> Result<()> {
    cassandra.ask("offline_drop", table, json!({})).map(drop)
}

/// Writes input `n` of a plan; `None` if its mutations leave nothing.
pub(crate) fn write_input(
    cassandra: &mut Cassandra,
    plan: &Plan,
    table: &Table,
    n: usize,
    place: &Path,
) -> Result<Option<PathBuf>> {
    let input = plan.inputs.get(n).context("no such input")?;
    let fields = json!({
        "version": input.version, "schema": input.schema, "partitions": input.partitions,
        "repaired_at": plan.repaired_at, "opened_early": input.opened_early, "idle_markers": input.idle_markers,
        "out": place.join("inputs").join((n + 1).to_string()), "generation": n + 1,
    });
    field(&cassandra.ask("offline_write", table, fields)?, "data")
}

/// Removes SSTables that have the data of an input. In our merge a copy of an input shadows nothing, since its data may
/// be nowhere else; to Cassandra it is one more SSTable.
fn without_copies(mut sstables: Vec<PathBuf>, inputs: &[PathBuf]) -> Result<Vec<PathBuf>> {
    for input in inputs {
        let input = std::fs::read(input)?;
        let mut kept = Vec::new();
        for sstable in sstables {
            if std::fs::read(&sstable)? != input {
                kept.push(sstable);
            }
        }
        sstables = kept;
    }
    Ok(sstables)
}

struct Merge<'a> {
    plan: &'a Plan,
    table: &'a Table,
    inputs: Vec<PathBuf>,
    others: Vec<PathBuf>,
    /// Whether the last of the inputs to merge is among them: its mutations may have left nothing.
    has_newest: bool,
}

impl Merge<'_> {
    fn compact(
        &self,
        cassandra: &mut Cassandra,
        output: &Path,
        max_sstable_size: Option<u64>,
    ) -> Result<Compacted> {
        let request = CompactRequest {
            others: &self.others,
            gc_before_s: self.plan.gc_before_s,
            max_sstable_size,
            ..CompactRequest::new(&self.inputs, output, self.plan.now_s)
        };
        cassandra
            .compact(self.table, &request)
            .context("Cassandra's own compaction")
    }

    fn judge(
        &self,
        cassandra: &mut Cassandra,
        directory: &Path,
        theirs: Option<&PathBuf>,
    ) -> Result<Vec<String>> {
        let schema = directory.with_file_name("schema.cql");
        if self.plan.with_schema {
            cassandra.schema(self.table, &schema)?;
        }
        let request = self.request(schema)?;
        let mut differences = self.compare(cassandra, directory, theirs, &request)?;
        if differences.is_empty() {
            let place = directory.with_file_name("passes");
            differences = other_commands::of_passes(self.plan, &self.inputs, &request, &place)?;
        }
        Ok(differences)
    }

    fn request(&self, schema: PathBuf) -> Result<MergeRequest> {
        Ok(MergeRequest {
            version: self.plan.output.clone(),
            now_s: self.plan.now_s,
            gc_before_s: self.plan.gc_before_s,
            complete: self.others.is_empty(),
            others: self.others.clone(),
            provided: Some(self.plan.provided()?),
            strict_liveness: Some(self.plan.strict_liveness),
            schema: self.plan.with_schema.then_some(schema),
            compression: None,
        })
    }

    /// Compares our merge into outputs of a maximum size with Cassandra's; returns whether there are several outputs.
    fn judge_sizes(
        &self,
        cassandra: &mut Cassandra,
        place: &Path,
        size: u64,
    ) -> Result<(Vec<String>, bool)> {
        let compacted = self.compact(cassandra, &place.join("cassandra-sizes"), Some(size))?;
        let theirs = compacted.outputs;
        let request = self.request(place.join("schema.cql"))?;
        let divided = theirs.len() > 1;
        let labelled =
            |difference: String| format!("outputs of at most {size} bytes: {difference}");
        let directory = place.join("sizes");
        let ours = match ours::merge_to_size(&self.inputs, &directory, &request, Some(size)) {
            Ok(ours) => ours,
            Err(error) => {
                return Ok((
                    vec![labelled(format!("our merge failed: {error:#}"))],
                    divided,
                ));
            }
        };
        if theirs.len() != ours.len() {
            let line = format!("{}, and Cassandra makes {}", ours.len(), theirs.len());
            return Ok((vec![labelled(line)], divided));
        }
        let mut differences = Vec::new();
        for (theirs, ours) in theirs.iter().zip(&ours) {
            let found = self.compare_output(cassandra, theirs, ours, Filter::ForAShare)?;
            differences.extend(found.into_iter().map(labelled));
        }
        Ok((differences, divided))
    }

    /// Compares our merge of the inputs with Cassandra's output.
    fn compare(
        &self,
        cassandra: &mut Cassandra,
        directory: &Path,
        theirs: Option<&PathBuf>,
        request: &MergeRequest,
    ) -> Result<Vec<String>> {
        let ours = match ours::merge(&self.inputs, directory, request) {
            Ok(ours) => ours,
            Err(error) => return Ok(vec![format!("our merge failed: {error:#}")]),
        };
        let (theirs, ours) = match (theirs, ours) {
            (None, None) => return Ok(Vec::new()),
            (Some(theirs), Some(ours)) => (theirs, ours),
            (theirs, _) => {
                let (with, without) = if theirs.is_some() {
                    ("Cassandra", "ours")
                } else {
                    ("ours", "Cassandra")
                };
                return Ok(vec![format!("an output of {with} but not of {without}")]);
            }
        };
        self.compare_output(cassandra, theirs, &ours, Filter::ForAllKeys)
    }

    /// Compares our output with Cassandra's.
    fn compare_output(
        &self,
        cassandra: &mut Cassandra,
        theirs: &Path,
        ours: &Path,
        filter: Filter,
    ) -> Result<Vec<String>> {
        let mut findings = cassandra.verify(self.table, ours)?;
        if filter == Filter::ForAShare {
            findings.retain(|finding| !finding.message.contains("too few bits"));
        }
        if findings.iter().any(is_seek_to_the_end) {
            let theirs = cassandra.verify(self.table, theirs)?;
            if theirs.iter().any(is_seek_to_the_end) {
                findings.retain(|finding| !is_seek_to_the_end(finding));
            }
        }
        let mut differences: Vec<String> = findings
            .iter()
            .map(|finding| format!("verifier: {finding}"))
            .collect();
        if other_commands::is_unreadable(theirs)? {
            cassandra.dump(self.table, ours)?;
            return Ok(differences);
        }
        let expected = cassandra.dump(self.table, theirs)?;
        match cassandra.dump(self.table, ours) {
            Ok(found) => differences
                .extend(compare::lines(&expected, &found).map(|text| format!("rows: {text}"))),
            Err(error) => differences.push(format!("our output cannot be read: {error:#}")),
        }
        if differences.is_empty() {
            // If the newest input is empty, our output is compressed like another one.
            let granted: &[Exception] = if self.has_newest {
                &[]
            } else {
                &[Exception::OwnCompression]
            };
            differences = parity::differences(cassandra, self.table, theirs, ours, granted)?;
            if filter == Filter::ForAShare {
                differences.retain(|difference| !difference.starts_with("Filter.db at byte"));
            }
        }
        Ok(differences)
    }
}

/// The error of 6.0-alpha2's verifier for a compressed SSTable whose content ends exactly where a chunk does, Cassandra's own
/// as well: at its end it seeks to a chunk after the last (`RandomAccessReader.seek`, `CompressionMetadata.chunkFor`).
fn is_seek_to_the_end(finding: &Finding) -> bool {
    finding.check == "verifier" && finding.message.contains("CompressionMetadata.chunkFor")
}
