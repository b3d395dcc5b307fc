package compactor.interop;

import java.io.OutputStream;
import java.util.Collection;

import org.apache.cassandra.config.Config.DiskAccessMode;
import org.apache.cassandra.config.DatabaseDescriptor;
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
import org.apache.cassandra.tcm.ClusterMetadataService;
import org.apache.cassandra.tools.JsonTransformer;
import org.apache.cassandra.tools.Util;
import org.apache.cassandra.utils.FBUtilities;
import org.apache.cassandra.utils.OutputHandler;

/** Calls whose names differ between Cassandra 6 and 5. */
final class Release
{
    private Release()
    {
    }

    static void loadSchema()
    {
        ClusterMetadataService.initializeForTools(false);
    }

    static void addTable(TableMetadata table)
    {
        Schema.instance.submit(SchemaTransformations.addTable(table, false));
    }

    /** A table that is in no schema. */
    static TableMetadata.Builder unlisted(String keyspace, String name, TableId id)
    {
        return TableMetadata.builder(keyspace, name, id).offline();
    }

    static ColumnFamilyStore open(Keyspace keyspace, TableMetadata table)
    {
        return ColumnFamilyStore.createColumnFamilyStore(keyspace, table.name, table, new Directories(table), false, false, false);
    }

    static TableMetadataRef ref(TableMetadata table)
    {
        return table.ref;
    }

    static ColumnMetadata dropped(String keyspace, String table, ColumnIdentifier name, AbstractType<?> type, ColumnMetadata.Kind kind)
    {
        return new ColumnMetadata(keyspace, table, name, type, ColumnMetadata.NO_UNIQUE_ID, ColumnMetadata.NO_POSITION, kind, null);
    }

    /** The cursor pipeline of 6.0-alpha2 resolves ties wrongly, so the iterator pipeline is the judge. */
    static void pipeline(boolean isCursor)
    {
        DatabaseDescriptor.setCursorCompactionEnabled(isCursor);
    }

    /** Page cache or O_DIRECT, for compactions. */
    static void access(DiskAccessMode mode)
    {
        DatabaseDescriptor.setCompactionReadDiskAccessMode(mode);
        DatabaseDescriptor.setBackgroundWriteDiskAccessMode(mode);
    }

    static void jsonLines(ISSTableScanner scanner, TableMetadata table, OutputStream out) throws Exception
    {
        JsonTransformer.toJsonLines(scanner, Util.iterToStream(scanner), false, false, table, FBUtilities.nowInSeconds(), out);
    }

    static OutputHandler noOutput()
    {
        return new OutputHandler.NullOutput();
    }

    /** Next compaction of a strategy; empty if there is none. */
    static Collection<AbstractCompactionTask> nextTasks(AbstractCompactionStrategy strategy, long gcBefore)
    {
        return strategy.getNextBackgroundTasks(gcBefore);
    }
}
