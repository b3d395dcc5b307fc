package compactor.interop;

import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.SplittableRandom;
import java.util.stream.LongStream;

import com.fasterxml.jackson.databind.JsonNode;

import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.DecoratedKey;
import org.apache.cassandra.db.SerializationHeader;
import org.apache.cassandra.db.marshal.LongType;
import org.apache.cassandra.db.partitions.PartitionUpdate;
import org.apache.cassandra.db.rows.EncodingStats;
import org.apache.cassandra.db.rows.UnfilteredRowIterator;
import org.apache.cassandra.io.sstable.Descriptor;
import org.apache.cassandra.io.sstable.SSTableTxnWriter;
import org.apache.cassandra.schema.TableMetadata;

/**
 * Writes one large SSTable of (k bigint, v blob) rows through Cassandra's own SSTable writer, in token order, without
 * memtables: what a flush or an earlier compaction would have left.
 */
final class Bulk
{
    private Bulk()
    {
    }

    static String run(ColumnFamilyStore cfs, JsonNode request) throws Exception
    {
        long first = request.get("first").longValue();
        int rows = request.get("rows").intValue();
        int valueBytes = request.get("value_bytes").intValue();
        int randomBytes = (int) Math.round(valueBytes * request.get("random_fraction").doubleValue());
        long timestamp = request.get("timestamp").longValue();
        TableMetadata metadata = cfs.metadata();
        DecoratedKey[] keys = LongStream.range(first, first + rows)
                                        .mapToObj(k -> metadata.partitioner.decorateKey(LongType.instance.decompose(k)))
                                        .sorted().toArray(DecoratedKey[]::new);
        EncodingStats stats = new EncodingStats(timestamp, EncodingStats.NO_STATS.minLocalDeletionTime, 0);
        SerializationHeader header = new SerializationHeader(true, metadata, metadata.regularAndStaticColumns(), stats);
        Descriptor descriptor = cfs.newSSTableDescriptor(cfs.getDirectories().getDirectoryForNewSSTables());
        SplittableRandom random = new SplittableRandom(first * 31 + timestamp);
        try (SSTableTxnWriter writer = SSTableTxnWriter.create(cfs, descriptor, rows, 0, null, false, header))
        {
            byte[] noise = new byte[randomBytes];
            for (DecoratedKey key : keys)
            {
                random.nextBytes(noise);
                byte[] value = java.util.Arrays.copyOf(noise, valueBytes);
                PartitionUpdate.SimpleBuilder builder = PartitionUpdate.simpleBuilder(metadata, key.getKey().duplicate());
                builder.timestamp(timestamp).row().add("v", ByteBuffer.wrap(value));
                try (UnfilteredRowIterator partition = builder.build().unfilteredIterator())
                {
                    writer.append(partition);
                }
            }
            writer.finish(false);
        }
        return moveOut(descriptor, Path.of(Operations.text(request, "out")), request.get("generation").intValue());
    }

    static String moveOut(Descriptor descriptor, Path directory, int generation) throws Exception
    {
        Files.createDirectories(directory);
        String own = descriptor.baseFile().name() + "-";
        String prefix = descriptor.version + "-" + generation + "-" + descriptor.getFormat().name() + "-";
        for (Path component : Stage.components(Bytes.path(descriptor, "Data.db")))
            Files.move(component, directory.resolve(prefix + component.getFileName().toString().substring(own.length())));
        return directory.resolve(prefix + "Data.db").toString();
    }
}
