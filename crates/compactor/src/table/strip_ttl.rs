//! Notes for the report of a run that removes TTLs.

use super::Table;

/// Returns notes on what still hides the data, or gives it a TTL again.
pub(super) fn notes(table: &Table) -> Vec<String> {
    let mut notes = vec![
        "a copy of a cell or row that still has its TTL, even an expired one, wins over the one without: take \
         the inputs out of the table before the output is loaded, and strip the table on every replica"
            .to_owned(),
        "entries of secondary indexes and rows of materialized views keep their TTL: drop and \
         create the indexes once the output is loaded (`nodetool rebuild_index` keeps their entries), and strip the \
         views as well"
            .to_owned(),
    ];
    let schema = table.schema();
    if let Some(seconds) = schema.and_then(|schema| schema.options.default_time_to_live)
        && seconds > 0
    {
        notes.push(format!(
            "the table has default_time_to_live {seconds}: data that is written from now on expires"
        ));
    }
    notes
}
