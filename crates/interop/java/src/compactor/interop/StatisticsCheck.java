package compactor.interop;

import java.nio.file.Files;
import java.util.EnumSet;
import java.util.Map;

import org.apache.cassandra.db.rows.RangeTombstoneBoundMarker;
import org.apache.cassandra.db.rows.RangeTombstoneBoundaryMarker;
import org.apache.cassandra.db.rows.RangeTombstoneMarker;
import org.apache.cassandra.db.rows.Row;
import org.apache.cassandra.db.rows.Rows;
import org.apache.cassandra.db.rows.Unfiltered;
import org.apache.cassandra.db.rows.UnfilteredRowIterator;
import org.apache.cassandra.db.SerializationHeader;
import org.apache.cassandra.io.compress.CompressionMetadata;
import org.apache.cassandra.io.sstable.Descriptor;
import org.apache.cassandra.io.sstable.ISSTableScanner;
import org.apache.cassandra.io.sstable.KeyReader;
import org.apache.cassandra.io.sstable.format.SSTableReader;
import org.apache.cassandra.io.sstable.format.Version;
import org.apache.cassandra.io.sstable.metadata.CompactionMetadata;
import org.apache.cassandra.io.sstable.metadata.MetadataCollector;
import org.apache.cassandra.io.sstable.metadata.MetadataComponent;
import org.apache.cassandra.io.sstable.metadata.MetadataType;
import org.apache.cassandra.io.sstable.metadata.StatsMetadata;
import org.apache.cassandra.io.sstable.metadata.ValidationMetadata;
import org.apache.cassandra.io.util.DataInputBuffer;
import org.apache.cassandra.io.util.DataOutputBuffer;
import org.apache.cassandra.schema.ColumnMetadata;
import org.apache.cassandra.schema.TableMetadata;

/** Compares Statistics.db with the result of Cassandra's own MetadataCollector for the content. */
final class StatisticsCheck
{
    private StatisticsCheck()
    {
    }

    /** Reads all four parts; opening an SSTable leaves COMPACTION aside. */
    static Map<MetadataType, MetadataComponent> load(Descriptor descriptor) throws Exception
    {
        Map<MetadataType, MetadataComponent> parts =
            descriptor.getMetadataSerializer().deserialize(descriptor, EnumSet.allOf(MetadataType.class));
        if (parts.size() != MetadataType.values().length)
            throw new IllegalStateException("Statistics.db has only the parts " + parts.keySet());
        return parts;
    }

    static void compare(SSTableReader reader, Findings findings) throws Exception
    {
        Map<MetadataType, MetadataComponent> parts = load(reader.descriptor);
        StatsMetadata found = (StatsMetadata) parts.get(MetadataType.STATS);
        Map<MetadataType, MetadataComponent> collected = collect(reader);
        StatsMetadata expected = onDisk(reader.descriptor.version, (StatsMetadata) collected.get(MetadataType.STATS));
        stats(findings, expected, found);
        validation(reader, findings, (ValidationMetadata) parts.get(MetadataType.VALIDATION));
        header(reader, findings, (SerializationHeader.Component) parts.get(MetadataType.HEADER));
        findings.equal("statistics", "cardinality estimator",
                       ((CompactionMetadata) collected.get(MetadataType.COMPACTION)).cardinalityEstimator.cardinality(),
                       ((CompactionMetadata) parts.get(MetadataType.COMPACTION)).cardinalityEstimator.cardinality());
        ratio(reader, findings, found);
    }

    private static void stats(Findings findings, StatsMetadata expected, StatsMetadata found)
    {
        findings.equal("statistics", "minTimestamp", expected.minTimestamp, found.minTimestamp);
        findings.equal("statistics", "maxTimestamp", expected.maxTimestamp, found.maxTimestamp);
        findings.equal("statistics", "minLocalDeletionTime", expected.minLocalDeletionTime, found.minLocalDeletionTime);
        findings.equal("statistics", "maxLocalDeletionTime", expected.maxLocalDeletionTime, found.maxLocalDeletionTime);
        findings.equal("statistics", "minTTL", expected.minTTL, found.minTTL);
        findings.equal("statistics", "maxTTL", expected.maxTTL, found.maxTTL);
        findings.equal("statistics", "totalRows", expected.totalRows, found.totalRows);
        findings.equal("statistics", "totalColumnsSet", expected.totalColumnsSet, found.totalColumnsSet);
        findings.equal("statistics", "hasPartitionLevelDeletions", expected.hasPartitionLevelDeletions, found.hasPartitionLevelDeletions);
        findings.equal("statistics", "hasLegacyCounterShards", expected.hasLegacyCounterShards, found.hasLegacyCounterShards);
        findings.equal("statistics", "coveredClustering", text(expected), text(found));
        findings.equal("statistics", "firstKey", expected.firstKey, found.firstKey);
        findings.equal("statistics", "lastKey", expected.lastKey, found.lastKey);
        findings.equal("statistics", "partition size histogram", MetadataJson.histogram(expected.estimatedPartitionSize),
                       MetadataJson.histogram(found.estimatedPartitionSize));
        findings.equal("statistics", "cell count histogram", MetadataJson.histogram(expected.estimatedCellPerPartitionCount),
                       MetadataJson.histogram(found.estimatedCellPerPartitionCount));
        findings.equal("statistics", "tombstone histogram", MetadataJson.histogram(expected.estimatedTombstoneDropTime),
                       MetadataJson.histogram(found.estimatedTombstoneDropTime));
    }

    private static String text(StatsMetadata stats)
    {
        return MetadataJson.bound(stats.coveredClustering.start()) + " .. " + MetadataJson.bound(stats.coveredClustering.end());
    }

    /** Feeds the collector as SortedTableWriter does. */
    private static Map<MetadataType, MetadataComponent> collect(SSTableReader reader) throws Exception
    {
        TableMetadata metadata = reader.metadata();
        MetadataCollector collector = new MetadataCollector(metadata.comparator, null);
        try (ISSTableScanner scanner = reader.getScanner(); KeyReader index = reader.keyReader())
        {
            while (scanner.hasNext())
            {
                long start = index.dataPosition();
                long end = index.advance() ? index.dataPosition() : reader.uncompressedLength();
                try (UnfilteredRowIterator partition = scanner.next())
                {
                    collector.updatePartitionDeletion(partition.partitionLevelDeletion());
                    if (!partition.staticRow().isEmpty())
                        Rows.collectStats(partition.staticRow(), collector);
                    boolean first = true;
                    while (partition.hasNext())
                    {
                        Unfiltered unfiltered = partition.next();
                        unfiltered(collector, unfiltered, first || !partition.hasNext());
                        first = false;
                    }
                    collector.addPartitionSizeInBytes(end - start);
                    collector.addKey(partition.partitionKey().getKey());
                    collector.addCellPerPartitionCount();
                }
            }
        }
        return collector.finalizeMetadata(metadata.partitioner.getClass().getCanonicalName(), metadata.params.bloomFilterFpChance,
                                          0, null, false, reader.header, reader.getFirst().getKey(), reader.getLast().getKey());
    }

    private static void unfiltered(MetadataCollector collector, Unfiltered unfiltered, boolean firstOrLast)
    {
        if (unfiltered.isRow())
        {
            Row row = (Row) unfiltered;
            if (firstOrLast)
                collector.updateClusteringValues(row.clustering());
            Rows.collectStats(row, collector);
            return;
        }
        RangeTombstoneMarker marker = (RangeTombstoneMarker) unfiltered;
        if (firstOrLast)
            collector.updateClusteringValuesByBoundOrBoundary(marker.clustering());
        if (marker.isBoundary())
        {
            collector.update(((RangeTombstoneBoundaryMarker) marker).endDeletionTime());
            collector.update(((RangeTombstoneBoundaryMarker) marker).startDeletionTime());
        }
        else
        {
            collector.update(((RangeTombstoneBoundMarker) marker).deletionTime());
        }
    }

    /** The statistics after this version wrote and read them: older versions keep less. */
    private static StatsMetadata onDisk(Version version, StatsMetadata stats) throws Exception
    {
        StatsMetadata.StatsMetadataSerializer serializer = new StatsMetadata.StatsMetadataSerializer();
        try (DataOutputBuffer out = new DataOutputBuffer())
        {
            serializer.serialize(version, stats, out);
            try (DataInputBuffer in = new DataInputBuffer(out.toByteArray()))
            {
                return serializer.deserialize(version, in);
            }
        }
    }

    private static void validation(SSTableReader reader, Findings findings, ValidationMetadata found)
    {
        findings.equal("statistics", "partitioner", reader.getPartitioner().getClass().getCanonicalName(), found.partitioner);
        findings.equal("statistics", "bloomFilterFPChance", reader.metadata().params.bloomFilterFpChance, found.bloomFilterFPChance);
    }

    private static void header(SSTableReader reader, Findings findings, SerializationHeader.Component found)
    {
        TableMetadata metadata = reader.metadata();
        findings.equal("header", "key type", metadata.partitionKeyType.toString(), found.getKeyType().toString());
        findings.equal("header", "clustering types", metadata.comparator.subtypes().toString(), found.getClusteringTypes().toString());
        found.getStaticColumns().forEach((name, type) -> column(findings, metadata, name, type.toString(), true));
        found.getRegularColumns().forEach((name, type) -> column(findings, metadata, name, type.toString(), false));
    }

    private static void column(Findings findings, TableMetadata metadata, java.nio.ByteBuffer name, String type, boolean isStatic)
    {
        ColumnMetadata column = metadata.getColumn(name);
        if (column == null)
            column = metadata.getDroppedColumn(name, isStatic);
        if (column == null)
        {
            findings.add("header", "unknown column " + MetadataJson.text(name));
            return;
        }
        findings.equal("header", "static column " + column.name, column.isStatic(), isStatic);
        // Multi-cell user types of dropped columns are kept frozen in the schema.
        if (metadata.getColumn(name) != null)
            findings.equal("header", "type of " + column.name, column.type.toString(), type);
    }

    static long chunks(CompressionMetadata compression)
    {
        return (compression.dataLength + compression.chunkLength() - 1) / compression.chunkLength();
    }

    /** Number of chunks in CompressionInfo.db, including the empty one of an output that was opened early. */
    private static long storedChunks(SSTableReader reader) throws Exception
    {
        byte[] info = Bytes.read(reader.descriptor, "CompressionInfo.db");
        java.io.DataInputStream in = new java.io.DataInputStream(new java.io.ByteArrayInputStream(info));
        in.readUTF();
        for (int options = in.readInt(); options > 0; options--)
        {
            in.readUTF();
            in.readUTF();
        }
        // Chunk length, maximum compressed length, length of the content.
        in.readInt();
        in.readInt();
        in.readLong();
        return in.readInt();
    }

    private static void ratio(SSTableReader reader, Findings findings, StatsMetadata found) throws Exception
    {
        if (!reader.compression)
        {
            findings.equal("statistics", "compressionRatio", MetadataCollector.NO_COMPRESSION_RATIO, found.compressionRatio);
            return;
        }
        long chunks = storedChunks(reader);
        long compressed = Files.size(Bytes.path(reader.descriptor, "Data.db")) - 4 * chunks;
        findings.equal("statistics", "compressionRatio", (double) compressed / reader.uncompressedLength(), found.compressionRatio);
    }
}
