package compactor.interop;

import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

import com.fasterxml.jackson.databind.JsonNode;

import org.apache.cassandra.config.DatabaseDescriptor;
import org.apache.cassandra.db.BufferClusteringBound;
import org.apache.cassandra.db.Clustering;
import org.apache.cassandra.db.ClusteringBound;
import org.apache.cassandra.db.ClusteringPrefix;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.DecoratedKey;
import org.apache.cassandra.db.DeletionTime;
import org.apache.cassandra.db.LivenessInfo;
import org.apache.cassandra.db.RangeTombstone;
import org.apache.cassandra.db.RegularAndStaticColumns;
import org.apache.cassandra.db.SerializationHeader;
import org.apache.cassandra.db.Slice;
import org.apache.cassandra.db.partitions.PartitionUpdate;
import org.apache.cassandra.db.rows.BTreeRow;
import org.apache.cassandra.db.rows.BufferCell;
import org.apache.cassandra.db.rows.Cell;
import org.apache.cassandra.db.rows.CellPath;
import org.apache.cassandra.db.rows.EncodingStats;
import org.apache.cassandra.db.rows.Row;
import org.apache.cassandra.db.rows.UnfilteredRowIterator;
import org.apache.cassandra.io.sstable.Descriptor;
import org.apache.cassandra.io.sstable.SSTableTxnWriter;
import org.apache.cassandra.io.sstable.format.SSTableWriter;
import org.apache.cassandra.io.sstable.format.Version;
import org.apache.cassandra.schema.ColumnMetadata;
import org.apache.cassandra.schema.TableMetadata;
import org.apache.cassandra.utils.ByteBufferUtil;

/**
 * One SSTable out of mutations that are given cell by cell, merged as a memtable merges them and written as a flush
 * writes them: any timestamp, deletion time, TTL and value, in any version that Cassandra still writes.
 */
final class OfflineWrite
{
    private final TableMetadata metadata;
    private final Map<String, ColumnMetadata> columns = new HashMap<>();
    private final RegularAndStaticColumns.Builder used = RegularAndStaticColumns.builder();
    private final java.util.Set<ColumnMetadata> seen = new java.util.HashSet<>();

    private OfflineWrite(TableMetadata metadata)
    {
        this.metadata = metadata;
        for (ColumnMetadata column : metadata.regularAndStaticColumns())
            columns.put(column.name.toString(), column);
    }

    /** The Data.db, or null if the mutations left nothing to write. */
    static String run(ColumnFamilyStore cfs, JsonNode request) throws Exception
    {
        TableMetadata base = cfs.metadata();
        TableMetadata metadata = request.hasNonNull("schema")
                               ? OfflineTable.metadata(base.keyspace, base.name, base.id, request.get("schema"))
                               : base;
        return new OfflineWrite(metadata).write(cfs, request);
    }

    private String write(ColumnFamilyStore cfs, JsonNode request) throws Exception
    {
        List<PartitionUpdate> updates = new ArrayList<>();
        for (JsonNode partition : request.get("partitions"))
            updates.add(partition(partition));
        updates.sort(java.util.Comparator.comparing(PartitionUpdate::partitionKey));
        updates.removeIf(PartitionUpdate::isEmpty);
        if (updates.isEmpty())
            return null;
        String[] version = Operations.text(request, "version").split("-");
        Version written = DatabaseDescriptor.getSSTableFormats().get(version[1]).getVersion(version[0]);
        Descriptor descriptor = cfs.newSSTableDescriptor(cfs.getDirectories().getDirectoryForNewSSTables(), written);
        SerializationHeader header = new SerializationHeader(true, metadata, used.build(),
                                                             EncodingStats.merge(updates, PartitionUpdate::stats));
        try (SSTableTxnWriter writer = SSTableTxnWriter.create(Release.ref(metadata), descriptor, updates.size(), request.get("repaired_at").longValue(),
                                                               null, false, header, Collections.emptyList(), cfs))
        {
            for (PartitionUpdate update : updates)
            {
                try (UnfilteredRowIterator partition = update.unfilteredIterator())
                {
                    writer.append(request.get("idle_markers").booleanValue() ? new IdleMarkers(partition) : partition);
                }
            }
            if (request.get("opened_early").booleanValue())
                openEarly(writer);
            writer.finish(false);
        }
        return Stage.moveOut(descriptor, Path.of(Operations.text(request, "out")), request.get("generation").intValue()).toString();
    }

    /** Does what SSTableRewriter.switchWriter does with an output that is complete and not yet committed. */
    private static void openEarly(SSTableTxnWriter writer) throws ReflectiveOperationException
    {
        Object sstableWriter = field(field(writer, "writer"), "writer");
        ((SSTableWriter) sstableWriter).openFinalEarly().selfRef().release();
    }

    private static Object field(Object owner, String name) throws ReflectiveOperationException
    {
        java.lang.reflect.Field field = owner.getClass().getDeclaredField(name);
        field.setAccessible(true);
        return field.get(owner);
    }

    private PartitionUpdate partition(JsonNode partition)
    {
        DecoratedKey key = metadata.partitioner.decorateKey(bytes(partition.get("key")));
        PartitionUpdate.Builder builder = new PartitionUpdate.Builder(metadata, key, metadata.regularAndStaticColumns(), 16);
        for (JsonNode mutation : partition.get("mutations"))
        {
            switch (Operations.text(mutation, "kind"))
            {
                case "partition":
                    builder.addPartitionDeletion(deletion(mutation.get("deletion")));
                    break;
                case "range":
                    Slice slice = Slice.make(bound(mutation.get("start"), true), bound(mutation.get("end"), false));
                    if (!slice.isEmpty(metadata.comparator))
                        builder.add(new RangeTombstone(slice, deletion(mutation.get("deletion"))));
                    break;
                case "row":
                    builder.add(row(mutation));
                    break;
                default:
                    throw new IllegalArgumentException("unknown kind of mutation " + mutation.get("kind"));
            }
        }
        return builder.build();
    }

    private Row row(JsonNode mutation)
    {
        Row.Builder row = BTreeRow.unsortedBuilder();
        row.newRow(mutation.hasNonNull("clustering") ? clustering(mutation.get("clustering")) : Clustering.STATIC_CLUSTERING);
        JsonNode liveness = mutation.get("liveness");
        if (!liveness.isNull())
        {
            long timestamp = liveness.get(0).longValue();
            int ttl = liveness.get(1).intValue();
            row.addPrimaryKeyLivenessInfo(ttl == 0 ? LivenessInfo.create(timestamp, LivenessInfo.NO_TTL, 0)
                                                   : LivenessInfo.withExpirationTime(timestamp, ttl, liveness.get(2).longValue()));
        }
        if (!mutation.get("deletion").isNull())
        {
            DeletionTime time = deletion(mutation.get("deletion"));
            row.addRowDeletion(mutation.get("shadowable").booleanValue() ? Row.Deletion.shadowable(time) : Row.Deletion.regular(time));
        }
        for (JsonNode complex : mutation.get("complex"))
            row.addComplexDeletion(column(complex.get(0)), DeletionTime.build(complex.get(1).longValue(), complex.get(2).longValue()));
        for (JsonNode cell : mutation.get("cells"))
        {
            CellPath path = cell.get(1).isNull() ? null : CellPath.create(bytes(cell.get(1)));
            long expiry = cell.get(4).isNull() ? Cell.NO_DELETION_TIME : cell.get(4).longValue();
            row.addCell(new BufferCell(column(cell.get(0)), cell.get(2).longValue(), cell.get(3).intValue(), expiry, bytes(cell.get(5)), path));
        }
        return row.build();
    }

    /** A flush's header names the columns that its mutations name, whether anything is left of them or not. */
    private ColumnMetadata column(JsonNode name)
    {
        ColumnMetadata column = columns.get(name.textValue());
        if (column == null)
            throw new IllegalArgumentException("no column " + name);
        if (seen.add(column))
            used.add(column);
        return column;
    }

    private Clustering<?> clustering(JsonNode values)
    {
        return metadata.comparator.size() == 0 ? Clustering.EMPTY : Clustering.make(all(values));
    }

    private static ClusteringBound<?> bound(JsonNode bound, boolean start)
    {
        ByteBuffer[] values = all(bound.get("values"));
        if (values.length == 0)
            return start ? BufferClusteringBound.BOTTOM : BufferClusteringBound.TOP;
        boolean inclusive = bound.get("inclusive").booleanValue();
        return BufferClusteringBound.create(ClusteringPrefix.Kind.valueOf((inclusive ? "INCL_" : "EXCL_") + (start ? "START" : "END") + "_BOUND"), values);
    }

    private static DeletionTime deletion(JsonNode pair)
    {
        return DeletionTime.build(pair.get(0).longValue(), pair.get(1).longValue());
    }

    /** Null stands for an absent clustering value, which only compact tables have. */
    private static ByteBuffer[] all(JsonNode values)
    {
        ByteBuffer[] buffers = new ByteBuffer[values.size()];
        for (int i = 0; i < buffers.length; i++)
            buffers[i] = values.get(i).isNull() ? null : bytes(values.get(i));
        return buffers;
    }

    private static ByteBuffer bytes(JsonNode hex)
    {
        return ByteBufferUtil.hexToBytes(hex.textValue());
    }
}
