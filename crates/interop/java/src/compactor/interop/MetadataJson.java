package compactor.interop;

import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.Map;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.cassandra.db.ClusteringBound;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.SerializationHeader;
import org.apache.cassandra.db.marshal.AbstractType;
import org.apache.cassandra.io.compress.CompressionMetadata;
import org.apache.cassandra.io.sstable.Descriptor;
import org.apache.cassandra.io.sstable.format.SSTableReader;
import org.apache.cassandra.io.sstable.metadata.CompactionMetadata;
import org.apache.cassandra.io.sstable.metadata.MetadataComponent;
import org.apache.cassandra.io.sstable.metadata.MetadataType;
import org.apache.cassandra.io.sstable.metadata.StatsMetadata;
import org.apache.cassandra.io.sstable.metadata.ValidationMetadata;
import org.apache.cassandra.utils.ByteBufferUtil;
import org.apache.cassandra.utils.EstimatedHistogram;
import org.apache.cassandra.utils.streamhist.TombstoneHistogram;

/** Statistics.db and the head of CompressionInfo.db as JSON. */
final class MetadataJson
{
    private MetadataJson()
    {
    }

    static ObjectNode run(ColumnFamilyStore cfs, String data) throws Exception
    {
        Descriptor staged = Stage.stageIn(cfs, Path.of(data));
        try
        {
            Map<MetadataType, MetadataComponent> parts = StatisticsCheck.load(staged);
            ObjectNode result = Server.JSON.createObjectNode();
            result.set("validation", validation((ValidationMetadata) parts.get(MetadataType.VALIDATION)));
            result.putObject("compaction").put("cardinality", ((CompactionMetadata) parts.get(MetadataType.COMPACTION)).cardinalityEstimator.cardinality());
            result.set("stats", stats((StatsMetadata) parts.get(MetadataType.STATS)));
            result.set("header", header((SerializationHeader.Component) parts.get(MetadataType.HEADER)));
            SSTableReader reader = SSTableReader.openNoValidation(staged, staged.discoverComponents(), cfs);
            try
            {
                result.put("uncompressed_length", reader.uncompressedLength());
                if (reader.compression)
                    result.set("compression", compression(reader.getCompressionMetadata()));
            }
            finally
            {
                reader.selfRef().release();
            }
            return result;
        }
        finally
        {
            Stage.remove(staged);
        }
    }

    private static ObjectNode validation(ValidationMetadata validation)
    {
        ObjectNode node = Server.JSON.createObjectNode();
        node.put("partitioner", validation.partitioner);
        node.put("bloom_filter_fp_chance", validation.bloomFilterFPChance);
        return node;
    }

    private static ObjectNode stats(StatsMetadata stats)
    {
        ObjectNode node = Server.JSON.createObjectNode();
        node.put("min_timestamp", stats.minTimestamp);
        node.put("max_timestamp", stats.maxTimestamp);
        node.put("min_local_deletion_time", stats.minLocalDeletionTime);
        node.put("max_local_deletion_time", stats.maxLocalDeletionTime);
        node.put("min_ttl", stats.minTTL);
        node.put("max_ttl", stats.maxTTL);
        node.put("compression_ratio", stats.compressionRatio);
        node.put("sstable_level", stats.sstableLevel);
        node.put("covered_start", bound(stats.coveredClustering.start()));
        node.put("covered_end", bound(stats.coveredClustering.end()));
        node.put("has_legacy_counter_shards", stats.hasLegacyCounterShards);
        node.put("repaired_at", stats.repairedAt);
        node.put("pending_repair", stats.pendingRepair == null ? null : stats.pendingRepair.toString());
        node.put("is_transient", stats.isTransient);
        node.put("originating_host_id", stats.originatingHostId == null ? null : stats.originatingHostId.toString());
        node.put("commit_log_intervals", stats.commitLogIntervals.toString());
        node.put("total_columns_set", stats.totalColumnsSet);
        node.put("total_rows", stats.totalRows);
        // NaN is not JSON.
        node.put("token_space_coverage", Double.isNaN(stats.tokenSpaceCoverage) ? null : stats.tokenSpaceCoverage);
        node.put("has_partition_level_deletions", stats.hasPartitionLevelDeletions);
        node.put("first_key", stats.firstKey == null ? null : ByteBufferUtil.bytesToHex(stats.firstKey));
        node.put("last_key", stats.lastKey == null ? null : ByteBufferUtil.bytesToHex(stats.lastKey));
        node.put("partition_sizes", histogram(stats.estimatedPartitionSize));
        node.put("cells_per_partition", histogram(stats.estimatedCellPerPartitionCount));
        node.put("tombstone_drop_times", histogram(stats.estimatedTombstoneDropTime));
        return node;
    }

    private static ObjectNode header(SerializationHeader.Component header)
    {
        ObjectNode node = Server.JSON.createObjectNode();
        node.put("min_timestamp", header.getEncodingStats().minTimestamp);
        node.put("min_local_deletion_time", header.getEncodingStats().minLocalDeletionTime);
        node.put("min_ttl", header.getEncodingStats().minTTL);
        node.put("key_type", header.getKeyType().toString());
        ArrayNode clusterings = node.putArray("clustering_types");
        header.getClusteringTypes().forEach(type -> clusterings.add(type.toString()));
        columns(node.putArray("static_columns"), header.getStaticColumns());
        columns(node.putArray("regular_columns"), header.getRegularColumns());
        return node;
    }

    private static void columns(ArrayNode array, Map<ByteBuffer, AbstractType<?>> columns)
    {
        columns.forEach((name, type) -> array.addObject().put("name", text(name)).put("type", type.toString()));
    }

    private static ObjectNode compression(CompressionMetadata compression)
    {
        ObjectNode node = Server.JSON.createObjectNode();
        node.put("compressor", compression.parameters.getSstableCompressor().getClass().getSimpleName());
        ObjectNode options = node.putObject("options");
        compression.parameters.getOtherOptions().forEach(options::put);
        node.put("chunk_length", compression.chunkLength());
        node.put("max_compressed_length", compression.maxCompressedLength());
        node.put("data_length", compression.dataLength);
        node.put("chunks", StatisticsCheck.chunks(compression));
        return node;
    }

    static String text(ByteBuffer name)
    {
        try
        {
            return ByteBufferUtil.string(name);
        }
        catch (java.nio.charset.CharacterCodingException e)
        {
            return ByteBufferUtil.bytesToHex(name);
        }
    }

    static String bound(ClusteringBound<?> bound)
    {
        return bound.kind() + Canonical.values(bound).toString();
    }

    /** Buckets that are not empty, as {@code offset:count}; the overflow bucket has no offset. */
    static String histogram(EstimatedHistogram histogram)
    {
        StringBuilder text = new StringBuilder();
        long[] offsets = histogram.getBucketOffsets();
        long[] counts = histogram.getBuckets(false);
        for (int i = 0; i < counts.length; i++)
            if (counts[i] != 0)
                text.append(i < offsets.length ? offsets[i] : -1).append(':').append(counts[i]).append(' ');
        return text.append('/').append(counts.length).toString();
    }

    static String histogram(TombstoneHistogram histogram)
    {
        StringBuilder text = new StringBuilder();
        histogram.forEach((point, value) -> text.append(point).append(':').append(value).append(' '));
        return text.toString().trim();
    }
}
