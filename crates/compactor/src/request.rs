//! A request to merge what was found, with what the table's schema says.

use std::path::PathBuf;

use crate::catalog::Catalog;
use crate::error::{Error, Result};
use crate::merge::MergeRequest;

impl Catalog {
    /// Asks for a merge of all SSTables that were found. From the schema come types, dropped columns, the
    /// Bloom filter's chance, the summary's interval, and how long tombstones must live. Without a schema,
    /// or without `gc_grace_seconds` in it, nothing is purged: which deletions other replicas have is not
    /// known.
    ///
    /// The [scope](MergeRequest::scope) is for the caller to say: as long as it is unknown, every tombstone
    /// is kept.
    pub fn merge_request(&self, output_directory: impl Into<PathBuf>) -> MergeRequest {
        let mut request = MergeRequest::new(self.sstables.clone(), output_directory);
        let Some((_, table)) = &self.schema else {
            return request;
        };
        let options = &table.options;
        let grace = options.gc_grace_seconds.map(i64::from);
        request.gc_before_s = grace.map(|seconds| request.now_s - seconds);
        request.only_purge_repaired = table.only_purge_repaired_tombstones();
        request.bloom_filter_fp_chance = options.bloom_filter_fp_chance;
        if let Some(interval) = options.min_index_interval {
            request.min_index_interval = interval.max(1);
        }
        request.table = Some(table.clone());
        request
    }

    /// `gc_grace_seconds` of the table for a request that may purge: `given`, otherwise that of the schema.
    ///
    /// Cassandra's default is no substitute. A table whose replicas are repaired once a month has a longer
    /// one, and tombstones that are purged too early bring back what they deleted.
    ///
    /// # Errors
    /// A refusal if neither specifies it.
    pub fn gc_grace_seconds(&self, given: Option<u32>) -> Result<u32> {
        let (path, of_schema) = match &self.schema {
            Some((path, table)) => (Some(path), table.options.gc_grace_seconds),
            None => (None, None),
        };
        given.or(of_schema).ok_or_else(|| {
            let missing = match path {
                Some(path) => format!("{} does not specify it", path.display()),
                None => "there is no schema.cql alongside the inputs".to_owned(),
            };
            Error::refused(format!(
                "gc_grace_seconds of this table is not known ({missing}), and tombstones may be purged: \
                 name a file with the output of `DESCRIBE TABLE` by --schema, or give --gc-grace-seconds"
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use compactor_sstable::schema::Schema;

    use super::*;
    use crate::ErrorKind;

    fn with_schema(options: &str) -> Catalog {
        let text = format!("CREATE TABLE ks.t (k int PRIMARY KEY){options};");
        let schema = Schema::parse(&text).unwrap();
        let table = schema.only_table().unwrap().clone();
        Catalog {
            schema: Some((PathBuf::from("t.cql"), table)),
            ..Catalog::default()
        }
    }

    #[test]
    fn grace_is_never_guessed() {
        let known = with_schema(" WITH gc_grace_seconds = 999999999");
        let (silent, none) = (with_schema(""), Catalog::default());
        assert_eq!(known.gc_grace_seconds(None).unwrap(), 999_999_999);
        for catalog in [&known, &silent, &none] {
            assert_eq!(catalog.gc_grace_seconds(Some(7)).unwrap(), 7);
        }
        for (catalog, why) in [(silent, "t.cql does not"), (none, "no schema.cql")] {
            let error = catalog.gc_grace_seconds(None).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Refused);
            assert!(error.to_string().contains(why), "{error}");
        }
    }
}
