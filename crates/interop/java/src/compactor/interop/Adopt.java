package compactor.interop;

import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

import com.fasterxml.jackson.databind.JsonNode;

import org.apache.cassandra.cql3.ColumnIdentifier;
import org.apache.cassandra.db.SerializationHeader;
import org.apache.cassandra.db.marshal.AbstractType;
import org.apache.cassandra.io.sstable.Descriptor;
import org.apache.cassandra.io.sstable.format.StatsComponent;
import org.apache.cassandra.io.sstable.metadata.MetadataType;
import org.apache.cassandra.io.util.File;
import org.apache.cassandra.schema.TableMetadata;
import org.apache.cassandra.utils.FBUtilities;

/**
 * Creates a table for SSTables that were written elsewhere and have no schema: its columns and types are those of the
 * SSTables' serialization headers, under the names that {@code sstabledump} gives them ({@code
 * Util.metadataFromSSTable}).
 */
final class Adopt
{
    private Adopt()
    {
    }

    static void run(JsonNode request) throws Exception
    {
        String keyspace = Operations.text(request, "keyspace");
        Node.execute(List.of("CREATE KEYSPACE IF NOT EXISTS \"" + keyspace + "\" WITH replication = "
                             + "{'class': 'SimpleStrategy', 'replication_factor': 1}"));
        List<SerializationHeader.Component> headers = new ArrayList<>();
        TableMetadata.Builder table = TableMetadata.builder(keyspace, Operations.text(request, "table"));
        for (Path data : Stage.dataFiles(request, "data"))
        {
            Descriptor descriptor = Descriptor.fromFileWithComponent(new File(data), false).left;
            if (!descriptor.version.isCompatible())
                throw new IllegalArgumentException("version " + descriptor.version + " is not read");
            headers.add(StatsComponent.load(descriptor, MetadataType.STATS, MetadataType.HEADER).serializationHeader());
            table.partitioner(FBUtilities.newPartitioner(descriptor));
        }
        SerializationHeader.Component newest = headers.get(headers.size() - 1);
        table.addPartitionKeyColumn("PartitionKey", newest.getKeyType());
        for (int i = 0; i < newest.getClusteringTypes().size(); i++)
            table.addClusteringColumn("clustering" + (i > 0 ? i : ""), newest.getClusteringTypes().get(i));
        Map<ByteBuffer, AbstractType<?>> statics = new LinkedHashMap<>();
        Map<ByteBuffer, AbstractType<?>> regulars = new LinkedHashMap<>();
        for (SerializationHeader.Component header : headers)
        {
            statics.putAll(header.getStaticColumns());
            regulars.putAll(header.getRegularColumns());
        }
        statics.forEach((name, type) -> table.addStaticColumn(identifier(name), type));
        regulars.forEach((name, type) -> table.addRegularColumn(identifier(name), type));
        boolean counters = statics.values().stream().anyMatch(AbstractType::isCounter)
                           || regulars.values().stream().anyMatch(AbstractType::isCounter);
        table.isCounter(counters);
        Release.addTable(table.build());
    }

    private static ColumnIdentifier identifier(ByteBuffer name)
    {
        return ColumnIdentifier.getInterned(name, org.apache.cassandra.db.marshal.UTF8Type.instance);
    }
}
