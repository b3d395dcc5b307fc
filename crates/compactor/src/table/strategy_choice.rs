//! The compaction strategy of a table: as asked for, else by its schema.

use std::collections::BTreeMap;

use compactor_sstable::schema::Table as TableSchema;
use compactor_strategy::options::Options;

pub(super) const SIZE_TIERED: &str = "SizeTieredCompactionStrategy";

/// Class and options of a strategy that the caller chose.
#[derive(Clone, Debug, Default)]
pub(super) struct StrategyChoice {
    /// `None` for the schema's.
    pub(super) class: Option<String>,
    /// They take precedence over the schema's.
    pub(super) options: BTreeMap<String, String>,
}

impl StrategyChoice {
    /// Returns class and options. Those of the schema apply if the class is the schema's. Without either the class
    /// is `SizeTieredCompactionStrategy`, Cassandra's default.
    pub(super) fn resolve(&self, schema: Option<&TableSchema>) -> (String, Options) {
        let mut options = schema
            .and_then(|schema| schema.options.compaction.clone())
            .unwrap_or_default();
        let of_schema = options.remove("class");
        let class = self.class.as_deref().or(of_schema.as_deref());
        let class = class.unwrap_or(SIZE_TIERED).to_owned();
        if of_schema.is_some_and(|of_schema| !is_class(&of_schema, unqualified(&class))) {
            options.clear();
        }
        options.extend(self.options.clone());
        (class, options)
    }
}

/// Whether this is the name of a class, with its package or without.
pub(super) fn is_class(name: &str, class: &str) -> bool {
    unqualified(name) == class
}

fn unqualified(class: &str) -> &str {
    class.rsplit('.').next().unwrap_or(class)
}
