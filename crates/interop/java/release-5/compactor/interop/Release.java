package compactor.interop;

import java.io.OutputStream;
import java.util.Collection;
import java.util.Collections;

import org.apache.cassandra.config.Config.DiskAccessMode;
import org.apache.cassandra.cql3.ColumnIdentifier;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.Directories;
import org.apache.cassandra.db.Keyspace;
import org.apache.cassandra.db.compaction.AbstractCompactionStrategy;
import org.apache.cassandra.db.compaction.AbstractCompactionTask;
import org.apache.cassandra.db.marshal.AbstractType;
import org.apache.cassandra.io.sstable.ISSTableScanner;
import org.apache.cassandra.schema.ColumnMetadata;
import org.apache.cassandra.schema.Schema;
import org.apache.cassandra.schema.SchemaTransformations;
import org.apache.cassandra.schema.TableId;
import org.apache.cassandra.schema.TableMetadata;
import org.apache.cassandra.schema.TableMetadataRef;
import org.apache.cassandra.tools.JsonTransformer;
import org.apache.cassandra.tools.Util;
import org.apache.cassandra.utils.OutputHandler;

/** Calls whose names differ between Cassandra 5 and 6. */
final class Release
{
    private Release()
    {
    }

    static void loadSchema()
    {
        Schema.instance.loadFromDisk();
    }

    static void addTable(TableMetadata table)
    {
        Schema.instance.transform(SchemaTransformations.addTable(table, false));
    }

    /** A table that is in no schema. */
    static TableMetadata.Builder unlisted(String keyspace, String name, TableId id)
    {
        return TableMetadata.builder(keyspace, name, id);
    }

    static ColumnFamilyStore open(Keyspace keyspace, TableMetadata table)
    {
        return ColumnFamilyStore.createColumnFamilyStore(keyspace, table.name, ref(table), new Directories(table), false, false, false);
    }

    static TableMetadataRef ref(TableMetadata table)
    {
        return TableMetadataRef.forOfflineTools(table);
    }

    static ColumnMetadata dropped(String keyspace, String table, ColumnIdentifier name, AbstractType<?> type, ColumnMetadata.Kind kind)
    {
        return new ColumnMetadata(keyspace, table, name, type, ColumnMetadata.NO_POSITION, kind, null);
    }

    /** Cassandra 5 has only the iterator pipeline. */
    static void pipeline(boolean isCursor)
    {
        if (isCursor)
            throw new IllegalArgumentException("Cassandra 5 has no cursor pipeline");
    }

    static void access(DiskAccessMode mode)
    {
        throw new IllegalArgumentException("Cassandra 5 chooses by itself how compactions read and write");
    }

    static void jsonLines(ISSTableScanner scanner, TableMetadata table, OutputStream out) throws Exception
    {
        JsonTransformer.toJsonLines(scanner, Util.iterToStream(scanner), false, table, out);
    }

    static OutputHandler noOutput()
    {
        return new OutputHandler()
        {
            @Override
            public void output(String message)
            {
            }

            @Override
            public void debug(String message)
            {
            }

            @Override
            public void warn(String message)
            {
            }

            @Override
            public void warn(Throwable reason, String message)
            {
            }
        };
    }

    /** Next compaction of a strategy; empty if there is none. */
    static Collection<AbstractCompactionTask> nextTasks(AbstractCompactionStrategy strategy, long gcBefore)
    {
        AbstractCompactionTask task = strategy.getNextBackgroundTask(gcBefore);
        return task == null ? Collections.emptyList() : Collections.singletonList(task);
    }
}
