package compactor.interop;

import org.apache.cassandra.schema.TableMetadata;

/** A table whose rows have no data without liveness, as rows of a view whose key has a column outside the base table's key. */
final class StrictTable extends TableMetadata
{
    StrictTable(TableMetadata table)
    {
        super(table.unbuild());
    }

    @Override
    public boolean enforceStrictLiveness()
    {
        return true;
    }
}
