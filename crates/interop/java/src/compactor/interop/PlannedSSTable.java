package compactor.interop;

import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.stream.LongStream;
import java.util.stream.StreamSupport;

import com.fasterxml.jackson.databind.JsonNode;

import org.apache.cassandra.db.BufferDecoratedKey;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.DecoratedKey;
import org.apache.cassandra.db.SerializationHeader;
import org.apache.cassandra.dht.Murmur3Partitioner;
import org.apache.cassandra.dht.Range;
import org.apache.cassandra.dht.Token;
import org.apache.cassandra.io.sstable.Descriptor;
import org.apache.cassandra.io.sstable.SequenceBasedSSTableId;
import org.apache.cassandra.io.sstable.format.SSTableReader;
import org.apache.cassandra.io.sstable.format.big.BigTableReader;
import org.apache.cassandra.io.sstable.keycache.KeyCache;
import org.apache.cassandra.io.sstable.metadata.MetadataCollector;
import org.apache.cassandra.io.sstable.metadata.MetadataType;
import org.apache.cassandra.io.sstable.metadata.StatsMetadata;
import org.apache.cassandra.metrics.RestorableMeter;
import org.apache.cassandra.utils.EstimatedHistogram;
import org.apache.cassandra.utils.FilterFactory;
import org.apache.cassandra.utils.streamhist.StreamingTombstoneHistogramBuilder;
import org.apache.cassandra.utils.streamhist.TombstoneHistogram;

/**
 * An SSTable without files: a strategy sees the sizes, bounds and statistics that a request names. Its reader is never
 * set up, so nothing is opened, and nothing closed.
 */
public final class PlannedSSTable extends BigTableReader
{
    private final JsonNode planned;
    private final TombstoneHistogram tombstones;
    private int level;

    private PlannedSSTable(Builder builder, ColumnFamilyStore cfs, JsonNode planned)
    {
        super(builder, cfs);
        this.planned = planned;
        tombstones = histogram(planned.get("tombstones"));
        level = planned.get("level").intValue();
        if (planned.get("is_suspect").booleanValue())
            markSuspect();
    }

    /** An SSTable of the table, as the request describes it. */
    static PlannedSSTable of(ColumnFamilyStore cfs, JsonNode planned)
    {
        Descriptor descriptor = new Descriptor(cfs.getDirectories().getDirectoryForNewSSTables(),
                                               cfs.getKeyspaceName(),
                                               cfs.getTableName(),
                                               new SequenceBasedSSTableId(planned.get("id").intValue()));
        DecoratedKey first = key(planned.get("first"));
        DecoratedKey last = key(planned.get("last"));
        SerializationHeader header = SerializationHeader.make(cfs.metadata(), Collections.emptyList());
        StatsMetadata stats = (StatsMetadata) new MetadataCollector(cfs.metadata().comparator)
                                              .finalizeMetadata(cfs.getPartitioner().getClass().getCanonicalName(), 0.01, 0, null, false,
                                                                header, first.getKey(), last.getKey())
                                              .get(MetadataType.STATS);
        Builder builder = new Builder(descriptor);
        builder.setComponents(Collections.emptySet());
        builder.setTableMetadataRef(Release.ref(cfs.metadata()));
        builder.setFilter(FilterFactory.AlwaysPresent);
        builder.setKeyCache(KeyCache.NO_CACHE);
        builder.setMaxDataAge(0);
        builder.setStatsMetadata(stats);
        builder.setSerializationHeader(header);
        builder.setOpenReason(SSTableReader.OpenReason.NORMAL);
        builder.setFirst(first);
        builder.setLast(last);
        return new PlannedSSTable(builder, cfs, planned);
    }

    /** The number by which requests name it. */
    public int id()
    {
        return planned.get("id").intValue();
    }

    private static DecoratedKey key(JsonNode position)
    {
        long token = position.get(0).longValue();
        // Keys that are equal have equal tokens: DecoratedKey.equals looks only at the keys.
        ByteBuffer key = ByteBuffer.allocate(Long.BYTES + 1).putLong(token);
        if (!position.get(1).isNull())
            key.put((byte) position.get(1).intValue());
        key.flip();
        return new BufferDecoratedKey(new Murmur3Partitioner.LongToken(token), key);
    }

    @Override
    public void setupOnline()
    {
    }

    @Override
    public long onDiskLength()
    {
        return planned.get("data_bytes").longValue();
    }

    @Override
    public long bytesOnDisk()
    {
        return planned.get("bytes_on_disk").longValue();
    }

    @Override
    public int getSSTableLevel()
    {
        return level;
    }

    @Override
    public void mutateLevelAndReload(int newLevel)
    {
        level = newLevel;
    }

    @Override
    public long getMinTimestamp()
    {
        return planned.get("min_timestamp").longValue();
    }

    @Override
    public long getMaxTimestamp()
    {
        return planned.get("max_timestamp").longValue();
    }

    @Override
    public long getMaxLocalDeletionTime()
    {
        return planned.get("max_local_deletion_time").longValue();
    }

    @Override
    public boolean isRepaired()
    {
        return planned.get("is_repaired").booleanValue();
    }

    @Override
    public long getDataCreationTime()
    {
        return planned.get("created_ms").longValue();
    }

    @Override
    public double tokenSpaceCoverage()
    {
        JsonNode coverage = planned.get("token_space_coverage");
        return coverage.isNull() ? Double.NaN : coverage.doubleValue();
    }

    @Override
    public boolean isMarkedCompacted()
    {
        return false;
    }

    @Override
    public RestorableMeter getReadMeter()
    {
        return null;
    }

    /** As {@code StatsMetadata} computes it, with the planned number of cells. */
    @Override
    public double getEstimatedDroppableTombstoneRatio(long gcBefore)
    {
        long cells = planned.get("cells").longValue();
        return cells > 0 ? tombstones.sum(gcBefore) / cells : 0.0;
    }

    private static TombstoneHistogram histogram(JsonNode points)
    {
        StreamingTombstoneHistogramBuilder builder = new StreamingTombstoneHistogramBuilder(Math.max(1, points.size()), 0, 1);
        for (JsonNode point : points)
            builder.update(point.get(0).longValue(), point.get(1).intValue());
        return builder.build();
    }

    /** Partitions of one cell each. */
    @Override
    public EstimatedHistogram getEstimatedCellPerPartitionCount()
    {
        EstimatedHistogram empty = new EstimatedHistogram();
        long[] partitions = empty.getBuckets(false);
        partitions[0] = planned.get("partitions").longValue();
        return new EstimatedHistogram(empty.getBucketOffsets(), partitions);
    }

    @Override
    public long estimatedKeys()
    {
        return planned.get("keys").longValue();
    }

    @Override
    public boolean isEstimationInformative()
    {
        return planned.get("samples").isNull() || planned.get("samples").size() > 2;
    }

    /** As an index summary of every key; without samples as an index of evenly distributed keys. */
    @Override
    public long estimatedKeysForRanges(Collection<Range<Token>> ranges)
    {
        List<Range<Token>> normalized = Range.normalize(ranges);
        if (planned.get("samples").isNull())
            return evenlyInside(normalized);
        LongStream samples = StreamSupport.stream(planned.get("samples").spliterator(), false).mapToLong(JsonNode::longValue);
        long keys = samples.filter(sample -> normalized.stream().anyMatch(range -> range.contains(new Murmur3Partitioner.LongToken(sample))))
                           .count();
        return Math.max(1, keys);
    }

    private long evenlyInside(List<Range<Token>> ranges)
    {
        BigInteger first = token(getFirst().getToken());
        BigInteger last = token(getLast().getToken());
        double covered = 0;
        for (Range<Token> range : ranges)
        {
            if (range.left.equals(range.right) || range.isWrapAround())
                return estimatedKeys();
            BigInteger overlap = token(range.right).min(last).subtract(token(range.left).max(first));
            covered += Math.max(0, overlap.add(BigInteger.ONE).doubleValue());
        }
        return (long) (covered / last.subtract(first).add(BigInteger.ONE).doubleValue() * estimatedKeys());
    }

    private static BigInteger token(Token token)
    {
        return BigInteger.valueOf(token.getLongValue());
    }
}
