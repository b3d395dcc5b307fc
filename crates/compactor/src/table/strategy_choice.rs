//! The compaction strategy of a table: as chosen by the caller, otherwise by its schema.

use std::collections::BTreeMap;

use compactor_sstable::Version;
use compactor_sstable::descriptor::Descriptor;
use compactor_strategy::CompactionParams;
use compactor_strategy::options::Options;
pub use compactor_strategy::release::Release;

use super::Table;
use crate::{Error, Result};

const SIZE_TIERED: &str = "SizeTieredCompactionStrategy";

/// A compaction strategy. The default is that of the table's schema, otherwise `SizeTieredCompactionStrategy`.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct StrategyChoice {
    class: Option<String>,
    options: BTreeMap<String, String>,
    release: Option<Release>,
}

/// The strategy of a table.
#[derive(Debug)]
pub(super) struct Resolved {
    pub(super) params: CompactionParams,
    pub(super) release: Release,
    /// Why the release is another one than that of the SSTables.
    pub(super) note: Option<String>,
}

impl StrategyChoice {
    /// Class of the strategy, with its package or without.
    pub fn class(mut self, class: impl Into<String>) -> StrategyChoice {
        self.class = Some(class.into());
        self
    }

    /// An option by Cassandra's name, such as `fanout_size`; takes precedence over the schema's.
    pub fn option(mut self, name: impl Into<String>, value: impl Into<String>) -> StrategyChoice {
        self.options.insert(name.into(), value.into());
        self
    }

    /// Value of an option that the caller has set, not the schema.
    pub(super) fn given(&self, name: &str) -> Option<&str> {
        self.options.get(name).map(String::as_str)
    }

    /// Release whose rules and defaults apply. Default: the one that by default writes the version of the newest
    /// SSTable, or 6.0 if that one alone has the options.
    pub fn release(mut self, release: Release) -> StrategyChoice {
        self.release = Some(release);
        self
    }

    /// Class for a table, without its package: the chosen one, otherwise that of the schema, otherwise
    /// `SizeTieredCompactionStrategy`.
    pub fn class_for(&self, table: &Table) -> String {
        unqualified(&self.class_and_options(table).0).to_owned()
    }

    /// Returns the strategy of a table. Options of the schema apply if the class is the schema's. Without either the
    /// class is `SizeTieredCompactionStrategy`, Cassandra's default.
    ///
    /// # Errors
    /// An unknown class, options that Cassandra refuses, or a schema that is there and cannot be read.
    pub(super) fn resolve(&self, table: &Table) -> Result<Resolved> {
        if self.class.is_none()
            && let Some(unread) = table.unread_schema()
        {
            return Err(Error::refused(format!(
                "the compaction strategy of this table is not known: {unread}. Say --strategy, with the options that \
                 the comment has"
            )));
        }
        let (class, options) = self.class_and_options(table);
        let of = |release| {
            let params = CompactionParams::from_options(&class, &options, release);
            params.map(|params| Resolved {
                params,
                release,
                note: None,
            })
        };
        let release = self.release.unwrap_or_else(|| release_of(table));
        let resolved = of(release).or_else(|refused| {
            let newer = of(Release::V6_0).ok().filter(|_| self.release.is_none());
            let note = format!(
                "the rules of Cassandra 6.0 apply: those of 5.0, which also writes this version, refuse the options \
                 of the strategy ({refused})"
            );
            newer.ok_or(refused).map(|newer| Resolved {
                note: Some(note),
                ..newer
            })
        });
        resolved.map_err(|e| Error::invalid(e.to_string()))
    }

    fn class_and_options(&self, table: &Table) -> (String, Options) {
        let schema = table.schema();
        let mut options = schema
            .and_then(|schema| schema.options.compaction.clone())
            .unwrap_or_default();
        let of_schema = options.remove("class");
        let class = self.class.as_deref().or(of_schema.as_deref());
        let class = class.unwrap_or(SIZE_TIERED).to_owned();
        if of_schema.is_some_and(|of_schema| unqualified(&of_schema) != unqualified(&class)) {
            options.clear();
        }
        options.extend(self.options.clone());
        (class, options)
    }
}

/// The release that by default writes the newest version of the table's SSTables.
fn release_of(table: &Table) -> Release {
    let versions = table.sstables().iter().filter_map(|path| {
        let file = Descriptor::parse(path).ok()?;
        Some(file.descriptor.version)
    });
    let release = versions.map(|version| match version {
        Version::Pa | Version::Ea => Release::V6_0,
        _ => Release::V5_0,
    });
    release.max().unwrap_or(Release::V5_0)
}

fn unqualified(class: &str) -> &str {
    class.rsplit('.').next().unwrap_or(class)
}
