package org.apache.cassandra.io.sstable.format.bti;

import java.io.IOException;

import org.apache.cassandra.db.ClusteringComparator;
import org.apache.cassandra.db.ClusteringPrefix;
import org.apache.cassandra.db.DecoratedKey;
import org.apache.cassandra.db.DeletionTime;
import org.apache.cassandra.io.sstable.SSTableReadsListener;
import org.apache.cassandra.io.sstable.format.Version;
import org.apache.cassandra.io.util.File;
import org.apache.cassandra.io.util.FileHandle;
import org.apache.cassandra.io.util.SequentialWriter;
import org.apache.cassandra.utils.ByteBufferUtil;

/**
 * Writes Partitions.db and Rows.db with Cassandra's own classes, which are visible only in their package. The arguments
 * are those that BtiTableWriter passes to them.
 */
public final class Tries implements AutoCloseable
{
    private final Version version;
    private final SequentialWriter rowsFile;
    private final SequentialWriter partitionsFile;
    private final RowIndexWriter rows;
    private final PartitionIndexBuilder partitions;

    public Tries(ClusteringComparator comparator, Version version, File rowsFile, File partitionsFile)
    {
        this.version = version;
        this.rowsFile = new SequentialWriter(rowsFile);
        this.partitionsFile = new SequentialWriter(partitionsFile);
        this.rows = new RowIndexWriter(comparator, this.rowsFile, version);
        this.partitions = new PartitionIndexBuilder(this.partitionsFile, new FileHandle.Builder(partitionsFile));
    }

    /** A block of the current partition. */
    public void block(ClusteringPrefix<?> first, ClusteringPrefix<?> last, long offset, DeletionTime open) throws IOException
    {
        rows.add(first, last, new RowIndexReader.IndexInfo(offset, open));
    }

    /** Ends the current partition, which has `blocks` blocks, at an offset from its start. */
    public void partition(DecoratedKey key, long position, DeletionTime deletion, int blocks, long end) throws IOException
    {
        long root = blocks > 1 ? rows.complete(end) : -1;
        long place = ~position;
        if (root != -1)
        {
            place = rowsFile.position();
            ByteBufferUtil.writeWithShortLength(key.getKey(), rowsFile);
            TrieIndexEntry.create(position, root, deletion, blocks).serialize(rowsFile, rowsFile.position(), version);
        }
        partitions.addEntry(key, place);
        rows.reset();
    }

    public void complete() throws IOException
    {
        partitions.complete();
        rowsFile.sync();
    }

    @Override
    public void close()
    {
        rows.close();
        partitions.close();
        rowsFile.close();
        partitionsFile.close();
    }

    /** Number of row blocks of a partition, 0 without a row index; -1 if the lookup does not find it. */
    public static int blocks(BtiTableReader reader, DecoratedKey key)
    {
        TrieIndexEntry entry = reader.getExactPosition(key, SSTableReadsListener.NOOP_LISTENER, false);
        if (entry == null)
            return -1;
        return entry.isIndexed() ? entry.blockCount() : 0;
    }
}
