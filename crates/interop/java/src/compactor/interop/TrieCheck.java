package compactor.interop;

import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;

import org.apache.cassandra.config.DatabaseDescriptor;
import org.apache.cassandra.db.ClusteringPrefix;
import org.apache.cassandra.db.DeletionTime;
import org.apache.cassandra.db.rows.BTreeRow;
import org.apache.cassandra.db.rows.DeserializationHelper;
import org.apache.cassandra.db.rows.RangeTombstoneMarker;
import org.apache.cassandra.db.rows.Unfiltered;
import org.apache.cassandra.db.rows.UnfilteredSerializer;
import org.apache.cassandra.io.sstable.format.SSTableReader;
import org.apache.cassandra.io.sstable.format.Version;
import org.apache.cassandra.io.sstable.format.bti.Tries;
import org.apache.cassandra.io.util.File;
import org.apache.cassandra.io.util.RandomAccessReader;
import org.apache.cassandra.utils.ByteBufferUtil;

/** Compares Partitions.db and Rows.db with those that Cassandra's own classes rebuild from Data.db, byte for byte. */
final class TrieCheck
{
    /** Cassandra's default column_index_size for the BTI format. */
    private static final int BLOCK = 16 * 1024;

    private TrieCheck()
    {
    }

    static void run(SSTableReader reader, Findings findings) throws Exception
    {
        Path directory = Files.createTempDirectory("tries");
        Path rows = directory.resolve("Rows.db");
        Path partitions = directory.resolve("Partitions.db");
        try
        {
            Version version = reader.descriptor.version;
            try (Tries tries = new Tries(reader.metadata().comparator, version, new File(rows), new File(partitions));
                 RandomAccessReader data = reader.openDataReader())
            {
                while (data.getFilePointer() < reader.uncompressedLength())
                    partition(reader, data, tries);
                tries.complete();
            }
            compare(reader, "Rows.db", rows, findings);
            compare(reader, "Partitions.db", partitions, findings);
        }
        finally
        {
            Files.deleteIfExists(rows);
            Files.deleteIfExists(partitions);
            Files.deleteIfExists(directory);
        }
    }

    private static void compare(SSTableReader reader, String component, Path expected, Findings findings) throws Exception
    {
        String difference = Bytes.difference(Files.readAllBytes(expected), Bytes.read(reader.descriptor, component));
        if (difference != null)
            findings.add("index", component + " differs from the one rebuilt from Data.db: " + difference);
    }

    /** Passes a partition to the writer as SortedTablePartitionWriter and BtiFormatPartitionWriter do. */
    private static void partition(SSTableReader reader, RandomAccessReader data, Tries tries) throws Exception
    {
        Version version = reader.descriptor.version;
        int limit = DatabaseDescriptor.getColumnIndexSize(BLOCK);
        long start = data.getFilePointer();
        ByteBuffer key = ByteBufferUtil.readWithShortLength(data);
        DeletionTime deletion = DeletionTime.getSerializer(version).deserialize(data);
        DeserializationHelper helper = new DeserializationHelper(reader.metadata(), version.correspondingMessagingVersion(),
                                                                 DeserializationHelper.Flag.LOCAL);
        if (reader.header.hasStatic())
            UnfilteredSerializer.serializer.deserializeStaticRow(data, reader.header, helper);
        ClusteringPrefix<?> first = null;
        ClusteringPrefix<?> last = null;
        DeletionTime open = DeletionTime.LIVE;
        DeletionTime openAtStart = DeletionTime.LIVE;
        long blockStart = 0;
        int blocks = 0;
        while (true)
        {
            long at = data.getFilePointer() - start;
            Unfiltered unfiltered = UnfilteredSerializer.serializer.deserialize(data, reader.header, helper, BTreeRow.sortedBuilder());
            if (unfiltered == null)
            {
                if (blocks > 0 && first != null)
                {
                    tries.block(first, last, blockStart, openAtStart);
                    blocks++;
                }
                tries.partition(reader.decorateKey(key), start, deletion, blocks, at);
                return;
            }
            if (first == null)
            {
                first = unfiltered.clustering();
                blockStart = at;
                openAtStart = open;
            }
            last = unfiltered.clustering();
            if (unfiltered.isRangeTombstoneMarker())
            {
                RangeTombstoneMarker marker = (RangeTombstoneMarker) unfiltered;
                open = marker.isOpen(false) ? marker.openDeletionTime(false) : DeletionTime.LIVE;
            }
            if (data.getFilePointer() - start - blockStart >= limit)
            {
                tries.block(first, last, blockStart, openAtStart);
                blocks++;
                first = null;
            }
        }
    }
}
