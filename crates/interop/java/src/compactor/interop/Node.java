package compactor.interop;

import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import java.util.UUID;
import java.util.stream.Collectors;

import com.fasterxml.jackson.databind.JsonNode;
import com.google.common.collect.ImmutableSet;
import com.google.common.collect.Sets;

import org.apache.cassandra.config.DatabaseDescriptor;
import org.apache.cassandra.cql3.QueryProcessor;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.Keyspace;
import org.apache.cassandra.db.SchemaCQLHelper;
import org.apache.cassandra.db.SystemKeyspace;
import org.apache.cassandra.db.commitlog.CommitLog;
import org.apache.cassandra.db.compaction.OperationType;
import org.apache.cassandra.io.sstable.format.SSTableReader;

/** Starts Cassandra's storage without a daemon, runs CQL, and flushes. */
final class Node
{
    private static final UUID HOST_ID = UUID.fromString("11111111-2222-4333-8444-555555555555");

    private Node()
    {
    }

    static void start()
    {
        DatabaseDescriptor.daemonInitialization(DatabaseDescriptor::loadConfig);
        DatabaseDescriptor.createAllDirectories();
        CommitLog.instance.start();
        Keyspace.setInitialized();
        Release.loadSchema();
        // SSTables of a real node carry its id and their commit log intervals.
        SystemKeyspace.setLocalHostId(HOST_ID);
    }

    /** The SSTable version that this server writes. */
    static String currentVersion()
    {
        return DatabaseDescriptor.getSelectedSSTableFormat().getLatestVersion().version;
    }

    static void execute(List<String> statements)
    {
        for (String cql : statements)
        {
            try
            {
                QueryProcessor.executeOnceInternal(cql);
            }
            catch (Exception e)
            {
                String shown = cql.length() > 300 ? cql.substring(0, 300) + "…" : cql;
                throw new IllegalArgumentException("CQL failed: " + shown + ": " + e.getMessage(), e);
            }
        }
    }

    /** The table that a request names, with automatic compaction off. */
    static ColumnFamilyStore table(JsonNode request)
    {
        String keyspace = Operations.text(request, "keyspace");
        String table = Operations.text(request, "table");
        ColumnFamilyStore offline = OfflineTable.find(table);
        if (offline != null)
            return offline;
        ColumnFamilyStore cfs = Keyspace.open(keyspace).getColumnFamilyStore(table);
        cfs.disableAutoCompaction();
        return cfs;
    }

    /**
     * Flushes the memtable, copies the one SSTable it becomes into {@code out} under the given generation, and takes it
     * out of the table again, so that every case starts from an empty table.
     */
    static String flush(ColumnFamilyStore cfs, String out, int generation) throws Exception
    {
        Set<SSTableReader> before = ImmutableSet.copyOf(cfs.getLiveSSTables());
        cfs.forceBlockingFlush(ColumnFamilyStore.FlushReason.UNIT_TESTS);
        Set<SSTableReader> written = Sets.difference(ImmutableSet.copyOf(cfs.getLiveSSTables()), before).immutableCopy();
        if (written.size() != 1)
            throw new IllegalStateException("a flush wrote " + written.size() + " SSTables, expected 1");
        SSTableReader reader = written.iterator().next();
        Path data = Stage.copyOut(reader, Path.of(out), generation);
        empty(cfs);
        return data.toString();
    }

    /** The table's statement in a snapshot's schema.cql. */
    static String schema(ColumnFamilyStore cfs)
    {
        return SchemaCQLHelper.reCreateStatementsForSchemaCql(cfs.metadata(), OfflineTable.keyspace(cfs))
                              .collect(Collectors.joining("\n"));
    }

    /** Drops every SSTable of the table and waits until the files are deleted. */
    static void empty(ColumnFamilyStore cfs)
    {
        cfs.getTracker().dropSSTables(sstable -> true, OperationType.UNKNOWN, null);
        org.apache.cassandra.db.lifecycle.LifecycleTransaction.waitForDeletions();
    }
}
