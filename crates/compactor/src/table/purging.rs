//! Purge options: tombstones and expired cells that a run may drop.
//!
//! A tombstone may be purged once it is older than `gc_grace_seconds` and nothing outside the inputs may
//! hold data that it shadows (`CompactionController.getPurgeEvaluator`).

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use compactor_engine::job::{Scope, TombstoneOption};
use compactor_sstable::descriptor::{DirectoryKind, TableDirectory};
use compactor_sstable::schema::Table as TableSchema;

use super::files::{FileKey, data_files};
use super::{Table, live_directory, snapshot_manifest, strip_ttl};
use crate::MergeRequest;
use crate::table_directories::in_other_data_directories;
use crate::{Error, Result};

/// Purge options. The default purges nothing, since other SSTables of the table may need every
/// tombstone.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Purging {
    /// The other SSTables of the table. SSTables named as overlapping may be `Data.db` files or
    /// directories; inputs among them are ignored.
    pub scope: Scope,
    /// Keeps every tombstone, whatever the scope.
    pub keep_tombstones: bool,
    /// Seconds that tombstones must live; `None` for the schema's.
    pub gc_grace_seconds: Option<u32>,
    /// Purges tombstones with a local deletion time before this, in seconds since 1970; takes precedence
    /// over `gc_grace_seconds`.
    pub gc_before_s: Option<i64>,
    /// Keeps the tombstones of inputs that are not repaired; `None` for the schema's
    /// `only_purge_repaired_tombstones`.
    pub only_repaired: Option<bool>,
    /// Data that overlapping SSTables remove from the output; `None` for the schema's
    /// `provide_overlapping_tombstones`.
    pub overlapping_tombstones: Option<TombstoneOption>,
    /// Time at which TTL expiry is evaluated, seconds since 1970; `None` for the clock.
    pub now_s: Option<i64>,
    /// Cells and rows lose their TTL before anything is reconciled or judged expired, so that data which has
    /// expired becomes live again. Tombstones stay, also those that expired cells have become.
    pub strip_ttl: bool,
}

impl Purging {
    /// Sets what a request may purge, and returns notes on it for the report.
    ///
    /// # Errors
    /// A refusal of a scope that the directories contradict, of a table that a node has open, or of an
    /// unknown `gc_grace_seconds`.
    pub(super) fn apply(&self, table: &Table, request: &mut MergeRequest) -> Result<Vec<String>> {
        let mut notes = Vec::new();
        request.now_s = self.now_s.unwrap_or_else(unix_now_s);
        request.scope = self.resolve_scope(table, &mut notes)?;
        if request.scope != Scope::Unknown && !self.keep_tombstones {
            live_directory::refuse_purge_while_live(&table.sstables)?;
            let overlapping: &[PathBuf] = match &request.scope {
                Scope::Overlapping(others) => others,
                _ => &[],
            };
            let known = table.sstables.iter().chain(overlapping);
            if request.scope == Scope::Complete {
                refuse_backups_alone(table)?;
            }
            refuse_unnamed_elsewhere(&table.directories, known.clone())?;
            notes.extend(snapshot_manifest::refuse_missing(
                &table.directories,
                known,
            )?);
        }
        request.gc_before_s = self.gc_before(table, request)?;
        let may_purge = request.scope != Scope::Unknown && request.gc_before_s.is_some();
        let schema = table.schema();
        if let Some(schema) = schema.filter(|_| may_purge) {
            refuse_unknown_purge_rules(schema)?;
            request.strict_liveness = schema.strict_liveness == Some(true);
        }
        if let Some(note) = table.kept_for_transactions() {
            request.keeps_expired = true;
            notes.push(note);
        } else if request.scope == Scope::Unknown && !self.keep_tombstones {
            notes.push(
                "every tombstone is kept, since other SSTables of the table may need them: say \
                 --complete if there are none, or name them with --overlapping"
                    .to_owned(),
            );
        }
        let of_schema = || {
            let schema = table.schema();
            schema.is_some_and(|schema| schema.only_purge_repaired_tombstones())
        };
        request.only_purge_repaired = self.only_repaired.unwrap_or_else(of_schema);
        request.strip_ttl = self.strip_ttl;
        if self.strip_ttl {
            notes.extend(strip_ttl::notes(table));
        }
        Ok(notes)
    }

    fn resolve_scope(&self, table: &Table, notes: &mut Vec<String>) -> Result<Scope> {
        match &self.scope {
            Scope::Unknown => Ok(Scope::Unknown),
            Scope::RestOfSet => Err(Error::invalid(
                "the other SSTables of a table are named by their paths",
            )),
            Scope::Complete => {
                if let [first, others @ ..] = &table.siblings[..] {
                    let more = match others.len() {
                        0 => "is".to_owned(),
                        more => format!("and {more} more are"),
                    };
                    return Err(Error::refused(format!(
                        "--complete says that the inputs are all that the table has, but {} {more} in \
                         the same directory. Name the directory to merge all, or name the others with \
                         --overlapping",
                        first.display(),
                    )));
                }
                notes.extend(table.outside_snapshot(&[]));
                Ok(Scope::Complete)
            }
            Scope::Overlapping(paths) => {
                let others = Table::open_without_schema(paths)?.sstables;
                let files_of = |paths: &[PathBuf]| -> HashSet<FileKey> {
                    paths.iter().filter_map(|path| FileKey::of(path)).collect()
                };
                let inputs = files_of(&table.sstables);
                // The table's whole directory may be named, of whose files those of a snapshot are hard links: inputs
                // do not overlap themselves.
                let others: Vec<PathBuf> = others
                    .into_iter()
                    .filter(|path| FileKey::of(path).is_none_or(|file| !inputs.contains(&file)))
                    .collect();
                let named = files_of(&others);
                let is_missing =
                    |path: &&PathBuf| FileKey::of(path).is_none_or(|file| !named.contains(&file));
                if let Some(missing) = table.siblings.iter().find(is_missing) {
                    return Err(Error::refused(format!(
                        "--overlapping must name every other SSTable of the table, but {} is in the \
                         directory of the inputs and is not named",
                        missing.display()
                    )));
                }
                notes.extend(table.outside_snapshot(&others));
                Ok(Scope::Overlapping(others))
            }
        }
    }

    /// The local deletion time before which deletions may be purged; `None` keeps all.
    fn gc_before(&self, table: &Table, request: &MergeRequest) -> Result<Option<i64>> {
        if self.keep_tombstones {
            return Ok(None);
        }
        if let Some(gc_before) = self.gc_before_s {
            return Ok(Some(gc_before));
        }
        let grace = self.gc_grace_seconds(table);
        if grace.is_err() && request.scope == Scope::Unknown {
            return Ok(None);
        }
        Ok(Some(request.now_s - i64::from(grace?)))
    }

    /// As given, otherwise that of the schema.
    ///
    /// Cassandra's default is no substitute. A table whose replicas are repaired once a month has a
    /// longer one, and tombstones that are purged too early bring back what they deleted.
    fn gc_grace_seconds(&self, table: &Table) -> Result<u32> {
        let (path, of_schema) = match &table.schema {
            Some((path, schema)) => (Some(path), schema.options.gc_grace_seconds),
            None => (None, None),
        };
        self.gc_grace_seconds.or(of_schema).ok_or_else(|| {
            let (missing, advice) = match (path, table.unread_schema()) {
                (Some(path), _) => (format!("{} does not specify it", path.display()), DESCRIBE),
                (None, Some(unread)) => (unread, ""),
                (None, None) => {
                    let missing = "there is no schema.cql alongside the inputs";
                    (missing.to_owned(), DESCRIBE)
                }
            };
            Error::refused(format!(
                "gc_grace_seconds of this table is not known ({missing}), and tombstones may be purged: \
                 {advice}give --gc-grace-seconds"
            ))
        })
    }

    /// Data that overlapping SSTables remove: as given, otherwise by the table's compaction options.
    ///
    /// # Errors
    /// An option without overlapping SSTables, or a name that Cassandra does not have.
    pub(super) fn resolve_overlapping_tombstones(
        &self,
        request: &MergeRequest,
        notes: &mut Vec<String>,
    ) -> Result<TombstoneOption> {
        if let Some(option) = self.overlapping_tombstones {
            let has_overlapping = matches!(request.scope, Scope::Overlapping(_));
            if option != TombstoneOption::None && !has_overlapping {
                return Err(Error::invalid(
                    "--provide-overlapping-tombstones needs --overlapping, and the SSTables that provide \
                     them",
                ));
            }
            return Ok(option);
        }
        let schema = request.table.as_ref();
        let Some(name) = schema.and_then(|s| s.compaction_option(PROVIDE)) else {
            return Ok(TombstoneOption::None);
        };
        let option = TombstoneOption::from_name(name).ok_or_else(|| {
            Error::invalid(format!(
                "the table has {PROVIDE} {name:?}, which Cassandra does not know: say \
                 --provide-overlapping-tombstones none, row or cell"
            ))
        })?;
        if option != TombstoneOption::None && request.scope == Scope::Unknown {
            notes.push(format!(
                "the table has {PROVIDE} {}, but no SSTables that provide any: name them with --overlapping",
                option.name()
            ));
        }
        Ok(option)
    }
}

impl Table {
    /// The note that nothing expires, for the report, if the table has transactions: they read as of a time in the
    /// past.
    pub(super) fn kept_for_transactions(&self) -> Option<String> {
        let schema = self.schema().filter(|schema| schema.is_transactional())?;
        Some(format!(
            "every tombstone and everything that has expired is kept, since table {} has transactions (Accord)",
            schema.name
        ))
    }
}

/// Refuses incremental backups as all that a table has, unless its directory is there and has no others: backups lack what
/// is older, which a snapshot has, and what the node's compactions wrote.
fn refuse_backups_alone(table: &Table) -> Result<()> {
    let table_of_backups = |directory: &PathBuf| {
        let own = directory.canonicalize().ok()?;
        let of = TableDirectory::parse(&own)?;
        let is_backups = of.table_id.is_some() && of.kind == DirectoryKind::Backups;
        is_backups.then(|| own.parent().map(Path::to_owned))?
    };
    let tables: Option<Vec<PathBuf>> = table.directories.iter().map(table_of_backups).collect();
    let (Some(tables), Some(first)) = (tables, table.directories.first()) else {
        return Ok(());
    };
    let has_sstables = |table: &PathBuf| !data_files(table).is_empty();
    if tables.iter().all(has_sstables) && table.outside_snapshot(&[]).is_none() {
        return Ok(());
    }
    Err(Error::refused(format!(
        "--complete says that the inputs are all that the table has, but {} has only the SSTables that were flushed or \
         streamed while incremental backups were enabled: a purged tombstone may delete rows that are older. Name the \
         snapshot that they follow as well, or use --no-purge",
        first.display()
    )))
}

/// Refuses SSTables in the node's other data directories that are neither inputs nor named as overlapping.
fn refuse_unnamed_elsewhere<'a>(
    directories: &[PathBuf],
    known: impl Iterator<Item = &'a PathBuf>,
) -> Result<()> {
    let others = directories
        .iter()
        .flat_map(|own| in_other_data_directories(own));
    let others: BTreeSet<PathBuf> = others.flat_map(|other| data_files(&other)).collect();
    let known: HashSet<FileKey> = known.filter_map(|path| FileKey::of(path)).collect();
    let is_unnamed = |path: &&PathBuf| FileKey::of(path).is_some_and(|file| !known.contains(&file));
    match others.iter().find(is_unnamed) {
        None => Ok(()),
        Some(first) => Err(Error::refused(format!(
            "{} is in another data directory of the same node, and neither an input nor named by --overlapping: it may \
             hold rows that a purged tombstone deletes. Name its directory as an input or by --overlapping, or use \
             --no-purge. If one of the two is a copy, move it elsewhere",
            first.display()
        ))),
    }
}

/// Refuses to purge a transactional table, or a view whose base table is unknown.
fn refuse_unknown_purge_rules(schema: &TableSchema) -> Result<()> {
    let name = &schema.name;
    if schema.is_transactional() {
        return Err(Error::refused(format!(
            "table {name} has transactions (Accord), and only the node knows which deletions they still need: \
             use --no-purge"
        )));
    }
    match (&schema.view_of, schema.strict_liveness) {
        (Some(base), None) => Err(Error::refused(format!(
            "what may be purged of view {name} depends on the primary key of its base table, which the schema \
             does not have: name a file with the output of DESCRIBE TABLE for {base}, which has both, by --schema, or \
             use --no-purge"
        ))),
        _ => Ok(()),
    }
}

/// Advice for a table whose schema is not known.
const DESCRIBE: &str = "name a file with the output of `DESCRIBE TABLE` by --schema, or ";

/// Compaction option of a table: only tombstones of repaired SSTables are purged.
pub(super) const ONLY_REPAIRED: &str = "only_purge_repaired_tombstones";

/// Compaction option of a table: data that overlapping SSTables remove.
pub(super) const PROVIDE: &str = "provide_overlapping_tombstones";

/// Seconds since 1970.
pub(super) fn unix_now_s() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| d.as_secs() as i64)
}

#[cfg(test)]
mod tests {
    use compactor_sstable::schema::Schema;

    use super::*;
    use crate::ErrorKind;

    fn with_schema(options: &str) -> Table {
        let text = format!("CREATE TABLE ks.t (k int PRIMARY KEY){options};");
        let schema = Schema::parse(&text).unwrap();
        let schema = schema.only_table().unwrap().clone();
        Table {
            schema: Some((PathBuf::from("t.cql"), schema)),
            ..Table::default()
        }
    }

    #[test]
    fn views_of_unknown_tables_and_transactional_tables_are_not_purged() {
        let check = |text: &str| {
            let schema = Schema::parse(text).unwrap();
            refuse_unknown_purge_rules(schema.tables.last().unwrap())
        };
        let base = "CREATE TABLE ks.t (k int PRIMARY KEY, v int);";
        let view = "CREATE MATERIALIZED VIEW ks.w AS SELECT * FROM ks.t WHERE v IS NOT NULL PRIMARY KEY (v, k);";
        check(base).unwrap();
        check(&format!("{base}{view}")).unwrap();
        let of_transactions =
            "CREATE TABLE ks.t (k int PRIMARY KEY) WITH transactional_mode = 'full';";
        for (text, why) in [(view, "DESCRIBE TABLE for t"), (of_transactions, "Accord")] {
            let error = check(text).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Refused);
            assert!(error.to_string().contains(why), "{error}");
        }
    }

    #[test]
    fn views_and_transactional_tables_have_rules_of_their_own() {
        let base = "CREATE TABLE ks.t (k int PRIMARY KEY, v int)";
        let view = "CREATE MATERIALIZED VIEW ks.w AS SELECT * FROM ks.t WHERE v IS NOT NULL \
                    PRIMARY KEY (v, k) WITH gc_grace_seconds = 9";
        let request_of = |text: &str, purging: &Purging| {
            let schema = Schema::parse(text).unwrap().only_table().unwrap().clone();
            let table = Table {
                schema: Some((PathBuf::from("t.cql"), schema)),
                ..Table::default()
            };
            let mut request = MergeRequest::new(Vec::new(), "");
            purging.apply(&table, &mut request).unwrap();
            request
        };
        let complete = Purging {
            scope: Scope::Complete,
            ..Purging::default()
        };
        let kept = Purging {
            keep_tombstones: true,
            ..complete.clone()
        };
        let view = format!("{view};{base}");
        assert!(request_of(&view, &complete).strict_liveness);
        assert!(!request_of(&view, &kept).strict_liveness);
        assert!(!request_of(&view, &Purging::default()).strict_liveness);
        let table = format!("{base} WITH gc_grace_seconds = 9");
        assert!(!request_of(&table, &complete).strict_liveness);
        assert!(!request_of(&table, &complete).keeps_expired);
        let transactional = format!("{table} AND transactional_mode = 'full'");
        assert!(request_of(&transactional, &kept).keeps_expired);
        assert!(request_of(&transactional, &Purging::default()).keeps_expired);
    }

    #[test]
    fn grace_is_never_guessed() {
        let seven = Purging {
            gc_grace_seconds: Some(7),
            ..Purging::default()
        };
        let asked = Purging::default();
        let known = with_schema(" WITH gc_grace_seconds = 999999999");
        let (silent, none) = (with_schema(""), Table::default());
        assert_eq!(asked.gc_grace_seconds(&known).unwrap(), 999_999_999);
        for table in [&known, &silent, &none] {
            assert_eq!(seven.gc_grace_seconds(table).unwrap(), 7);
        }
        for (table, why) in [(silent, "t.cql does not"), (none, "no schema.cql")] {
            let error = asked.gc_grace_seconds(&table).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Refused);
            assert!(error.to_string().contains(why), "{error}");
        }
    }
}
