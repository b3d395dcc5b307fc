package compactor.interop;

import java.util.Set;

import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.Directories;
import org.apache.cassandra.db.compaction.CompactionTask;
import org.apache.cassandra.db.compaction.writers.CompactionAwareWriter;
import org.apache.cassandra.db.compaction.writers.MaxSSTableSizeWriter;
import org.apache.cassandra.db.lifecycle.LifecycleTransaction;
import org.apache.cassandra.io.sstable.format.SSTableReader;

/** Compaction into outputs of a maximum size in level 0, as in SSTableSplitter's task, whose sizes are in MiB. */
final class ToSize extends CompactionTask
{
    private final long maxSSTableSize;

    ToSize(ColumnFamilyStore cfs, LifecycleTransaction txn, long gcBefore, long maxSSTableSize)
    {
        super(cfs, txn, gcBefore);
        this.maxSSTableSize = maxSSTableSize;
    }

    @Override
    public CompactionAwareWriter getCompactionAwareWriter(ColumnFamilyStore cfs, Directories directories, LifecycleTransaction txn, Set<SSTableReader> nonExpired)
    {
        return new MaxSSTableSizeWriter(cfs, directories, txn, nonExpired, maxSSTableSize, 0);
    }
}
