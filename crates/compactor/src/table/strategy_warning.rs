//! Effect of one large SSTable on the strategy that compacts the table.

use compactor_sstable::schema::Table as TableSchema;

/// Returns a warning if all SSTables of a table become one although its strategy keeps them apart. Outputs
/// are of a limited size if `is_split`.
pub(super) fn of_one_sstable(schema: Option<&TableSchema>, is_split: bool) -> Option<String> {
    let class = schema?.compaction_option("class")?;
    Some(match class.rsplit('.').next()? {
        "TimeWindowCompactionStrategy" => format!(
            "the table has {class}: data of all time windows goes into one SSTable, which a node can drop \
             only once its newest data has expired. Merge the SSTables of one window at a time"
        ),
        "LeveledCompactionStrategy" if !is_split => format!(
            "the table has {class}: a single SSTable with all data goes to level 0, where the node rewrites \
             it. `compactor merge --max-sstable-size` makes SSTables of the strategy's size"
        ),
        "UnifiedCompactionStrategy" if !is_split => format!(
            "the table has {class}: a single SSTable with all data is not split into shards, as the node's \
             own would be. `compactor merge --max-sstable-size` makes smaller ones"
        ),
        "DateTieredCompactionStrategy" => format!(
            "the table has {class}: data of all time windows goes into the same SSTable. Merge the \
             SSTables of one window at a time"
        ),
        _ => return None,
    })
}
