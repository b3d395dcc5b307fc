package compactor.interop;

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

/**
 * An SSTable without files: a strategy sees the sizes, bounds and statistics that a request names. Its reader is never
 * set up, so nothing is opened, and nothing closed.
 */
public final class PlannedSSTable extends BigTableReader
{
    private final JsonNode planned;
    private int level;

    private PlannedSSTable(Builder builder, ColumnFamilyStore cfs, JsonNode planned)
    {
        super(builder, cfs);
        this.planned = planned;
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
        ByteBuffer key = ByteBuffer.allocate(Long.BYTES + 1).putLong(token).put((byte) position.get(1).intValue()).flip();
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

    /** Tombstones at one time, of a thousand cells. */
    @Override
    public double getEstimatedDroppableTombstoneRatio(long gcBefore)
    {
        return gcBefore >= planned.get("tombstones_at").longValue() ? planned.get("tombstones").longValue() / 1000.0 : 0.0;
    }

    @Override
    public EstimatedHistogram getEstimatedCellPerPartitionCount()
    {
        EstimatedHistogram cells = new EstimatedHistogram();
        for (long n = 0; n < estimatedKeys(); n++)
            cells.add(1);
        return cells;
    }

    @Override
    public long estimatedKeys()
    {
        return planned.get("samples").size();
    }

    @Override
    public boolean isEstimationInformative()
    {
        return planned.get("samples").size() > 2;
    }

    /** As an index summary of every key. */
    @Override
    public long estimatedKeysForRanges(Collection<Range<Token>> ranges)
    {
        List<Range<Token>> normalized = Range.normalize(ranges);
        LongStream samples = StreamSupport.stream(planned.get("samples").spliterator(), false).mapToLong(JsonNode::longValue);
        long keys = samples.filter(sample -> normalized.stream().anyMatch(range -> range.contains(new Murmur3Partitioner.LongToken(sample))))
                           .count();
        return Math.max(1, keys);
    }
}
