//! SSTables that a run may replace: only those of its own table, which protects other tables if a wrong
//! directory is given.

use std::path::{Path, PathBuf};

use compactor_io::{Io, IoOptions, ReadMode};
use compactor_sstable::descriptor::Descriptor;
use compactor_sstable::schema::Table;
use compactor_sstable::statistics::{EncodingStats, SerializationHeader};

use crate::error::{Error, Result};
use crate::input::header_union::{HeaderSource, union};
use crate::input::sstable::{parse_data_name, read_statistics};

/// Conditions under which a run may replace SSTables.
#[derive(Clone, Copy, Debug, Default)]
pub struct Replaceable<'a> {
    /// `Data.db` of the run's inputs. Replaced SSTables must have compatible columns and types. Without
    /// readable inputs and without a schema there is nothing to compare with, and anything may be replaced.
    pub inputs: &'a [PathBuf],
    /// The table's schema, if it is known: it must include the columns of a replaced SSTable.
    pub table: Option<&'a Table>,
    /// `Data.db` of outputs of an earlier run, which may be replaced even if they cannot be read or have columns that
    /// the schema has no longer.
    pub outputs: &'a [PathBuf],
}

impl<'a> Replaceable<'a> {
    /// Those of the table of these inputs.
    pub fn of_inputs(inputs: &'a [PathBuf]) -> Replaceable<'a> {
        Replaceable {
            inputs,
            ..Replaceable::default()
        }
    }

    /// Refuses SSTables that are not of the table, or for which this cannot be determined.
    ///
    /// # Errors
    /// A refusal that names the first of them.
    pub(crate) fn refuse_others(&self, sstables: &[PathBuf]) -> Result<()> {
        if sstables.is_empty() {
            return Ok(());
        }
        let io = Io::new(IoOptions::default())?;
        // Some runs skip damaged inputs; others fail on them before anything is replaced.
        let mut inputs = self.inputs.iter();
        let input = inputs.find_map(|path| read_header(&io, path).ok());
        if input.is_none() && self.table.is_none() {
            return Ok(());
        }
        for path in sstables {
            let refused = |why: String| {
                Error::Refused(format!(
                    "{} would be replaced, but {why}. Choose another directory, or move the SSTable away \
                     first",
                    path.display()
                ))
            };
            let is_output = self.outputs.contains(path);
            let (descriptor, header) = match read_header(&io, path) {
                Ok(there) => there,
                Err(_) if is_output => continue,
                Err(error) => {
                    return Err(refused(format!(
                        "it is not known whether it is of the table: {error}"
                    )));
                }
            };
            if let Some((of_input, input)) = &input {
                let source = |descriptor, header| HeaderSource { descriptor, header };
                let sources = [source(of_input, input), source(&descriptor, &header)];
                union(&sources, EncodingStats::default()).map_err(|error| {
                    refused(format!("it is not of the table of the inputs: {error}"))
                })?;
            }
            let disagreement = self.table.and_then(|table| {
                let disagreement = table.check_header(&header).err()?;
                if is_output && disagreement.is_unknown_column() {
                    return None;
                }
                Some(format!("it is not of table {}: {disagreement}", table.name))
            });
            if let Some(why) = disagreement {
                return Err(refused(why));
            }
        }
        Ok(())
    }
}

/// Reads columns and types of an SSTable.
fn read_header(io: &Io, data_path: &Path) -> Result<(Descriptor, SerializationHeader)> {
    let descriptor = parse_data_name(data_path)?;
    let statistics = read_statistics(io, ReadMode::Auto, &descriptor)?;
    Ok((descriptor, statistics.header))
}

#[cfg(test)]
mod tests {
    use compactor_sstable::schema::Schema;

    use super::*;

    const TESTDATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../compactor-sstable/testdata");

    fn sstable(case: &str, number: u32) -> PathBuf {
        let version = case.split_once('-').unwrap().0;
        let name = format!("{case}/inputs/{number}/{version}-{number}-big-Data.db");
        Path::new(TESTDATA).join(name)
    }

    #[test]
    fn sstables_of_other_tables_are_not_replaced() {
        let [ours, same] = [1, 2].map(|number| sstable("oa-range_nested", number));
        let other = sstable("nb-statics", 1);
        let missing = sstable("oa-range_nested", 7);
        let inputs = [missing.clone(), ours];
        let replaceable = Replaceable {
            inputs: &inputs,
            ..Replaceable::default()
        };
        let refused = |replaceable: Replaceable<'_>, path: &PathBuf, why: &str| match replaceable
            .refuse_others(&[same.clone(), path.clone()])
        {
            Err(Error::Refused(message)) => {
                assert!(message.contains(why), "{message}");
                assert!(message.starts_with(path.to_str().unwrap()), "{message}");
            }
            other => panic!("{other:?}"),
        };
        replaceable
            .refuse_others(std::slice::from_ref(&same))
            .unwrap();
        refused(replaceable, &other, "not of the table of the inputs");
        refused(replaceable, &missing, "is not known");
        let jb = PathBuf::from("ks-t-jb-1-Data.db");
        refused(replaceable, &jb, "is not known");

        let outputs = [other.clone(), missing.clone(), jb.clone()];
        let known = Replaceable {
            outputs: &outputs,
            ..replaceable
        };
        known.refuse_others(&[same.clone(), missing, jb]).unwrap();
        refused(known, &other, "not of the table of the inputs");
        Replaceable::default().refuse_others(&[other]).unwrap();

        // A table with the same key and other columns.
        let text = "CREATE TABLE ks.t (k int PRIMARY KEY, only_here int);";
        let schema = Schema::parse(text).unwrap();
        let of_schema = Replaceable {
            table: Some(schema.only_table().unwrap()),
            ..replaceable
        };
        refused(of_schema, &same, "not of table t");
        let without_inputs = Replaceable {
            inputs: &[],
            ..of_schema
        };
        // The same table without its columns.
        let text = "CREATE TABLE ks.t (k int, c int, PRIMARY KEY (k, c));";
        let schema = Schema::parse(text).unwrap();
        let of_new_schema = Replaceable {
            table: Some(schema.only_table().unwrap()),
            ..replaceable
        };
        refused(of_new_schema, &inputs[1], "not of table t");
        let of_output = Replaceable {
            outputs: std::slice::from_ref(&inputs[1]),
            ..of_new_schema
        };
        of_output
            .refuse_others(std::slice::from_ref(&inputs[1]))
            .unwrap();
        let error = without_inputs.refuse_others(&[same]).unwrap_err();
        assert!(error.to_string().contains("not of table t"), "{error}");
    }
}
