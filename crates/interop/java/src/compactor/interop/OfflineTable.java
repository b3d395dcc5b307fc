package compactor.interop;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

import com.fasterxml.jackson.databind.JsonNode;

import org.apache.cassandra.cql3.ColumnIdentifier;
import org.apache.cassandra.cql3.QueryProcessor;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.Keyspace;
import org.apache.cassandra.db.marshal.AbstractType;
import org.apache.cassandra.db.marshal.TypeParser;
import org.apache.cassandra.db.marshal.UserType;
import org.apache.cassandra.schema.ColumnMetadata;
import org.apache.cassandra.schema.CompactionParams;
import org.apache.cassandra.schema.CompressionParams;
import org.apache.cassandra.schema.KeyspaceMetadata;
import org.apache.cassandra.schema.TableId;
import org.apache.cassandra.schema.TableMetadata;
import org.apache.cassandra.schema.Types;

/**
 * Tables outside any schema, made from class names of types: they can have what CQL cannot express (types by class,
 * flags of compact tables, drops at any time), and nothing waits for a schema change.
 */
final class OfflineTable
{
    private static final Map<String, ColumnFamilyStore> TABLES = new ConcurrentHashMap<>();

    private OfflineTable()
    {
    }

    /** The table of this name, or null. */
    static ColumnFamilyStore find(String name)
    {
        return TABLES.get(name);
    }

    static void create(JsonNode request)
    {
        String keyspace = Operations.text(request, "keyspace");
        String name = Operations.text(request, "table");
        QueryProcessor.executeOnceInternal("CREATE KEYSPACE IF NOT EXISTS " + keyspace
                                           + " WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
        TableMetadata metadata = metadata(keyspace, name, TableId.generate(), request.get("schema"));
        metadata = metadata.unbuild().compaction(compaction(Operations.text(request, "provided"))).build();
        if (request.get("strict_liveness").booleanValue())
            metadata = new StrictTable(metadata);
        ColumnFamilyStore cfs = Release.open(Keyspace.open(keyspace), metadata);
        cfs.disableAutoCompaction();
        TABLES.put(name, cfs);
    }

    static void drop(JsonNode request) throws Exception
    {
        ColumnFamilyStore cfs = TABLES.remove(Operations.text(request, "table"));
        if (cfs == null)
            throw new IllegalArgumentException("no such table: " + request.get("table"));
        cfs.invalidate(false, true);
        for (java.io.File directory : cfs.getDirectories().getCFDirectories().stream().map(org.apache.cassandra.io.util.File::toJavaIOFile).toList())
            org.apache.cassandra.io.util.PathUtils.deleteRecursive(directory.toPath());
    }

    /** Columns, flags and parameters as the request spells them. */
    static TableMetadata metadata(String keyspace, String name, TableId id, JsonNode schema)
    {
        TableMetadata.Builder builder = Release.unlisted(keyspace, name, id);
        int n = 0;
        for (JsonNode type : schema.get("partition"))
            builder.addPartitionKeyColumn("pk" + n++, type(type));
        n = 0;
        for (JsonNode type : schema.get("clustering"))
            builder.addClusteringColumn("ck" + n++, type(type));
        for (JsonNode column : schema.get("static"))
            builder.addStaticColumn(name(column), type(column.get("type")));
        for (JsonNode column : schema.get("regular"))
            builder.addRegularColumn(name(column), type(column.get("type")));
        for (JsonNode column : schema.get("dropped"))
        {
            ColumnIdentifier dropped = name(column);
            AbstractType<?> type = type(column.get("type"));
            ColumnMetadata.Kind kind = column.get("is_static").booleanValue() ? ColumnMetadata.Kind.STATIC : ColumnMetadata.Kind.REGULAR;
            builder.recordColumnDrop(Release.dropped(keyspace, name, dropped, type, kind), column.get("dropped_at").longValue());
        }
        java.util.Set<TableMetadata.Flag> flags = java.util.EnumSet.noneOf(TableMetadata.Flag.class);
        for (JsonNode flag : schema.get("flags"))
            flags.add(TableMetadata.Flag.valueOf(flag.textValue()));
        builder.flags(flags);
        builder.bloomFilterFpChance(schema.get("bloom_filter_fp_chance").doubleValue());
        return builder.compression(compression(schema.get("compression"))).build();
    }

    /** The default compaction, with this option for tombstones of overlapping SSTables. */
    private static CompactionParams compaction(String provided)
    {
        return CompactionParams.fromMap(Map.of("class", "SizeTieredCompactionStrategy", "provide_overlapping_tombstones", provided));
    }

    /** Compression parameters from the options that CQL gives them. */
    static CompressionParams compression(JsonNode options)
    {
        Map<String, String> map = new java.util.HashMap<>();
        options.fields().forEachRemaining(option -> map.put(option.getKey(), option.getValue().textValue()));
        return CompressionParams.fromMap(map);
    }

    /** The name with its exact case: a column's name may have capitals. */
    private static ColumnIdentifier name(JsonNode column)
    {
        return ColumnIdentifier.getInterned(Operations.text(column, "name"), true);
    }

    /** The table's keyspace, with the user types of the table if no schema knows them. */
    static KeyspaceMetadata keyspace(ColumnFamilyStore cfs)
    {
        KeyspaceMetadata keyspace = cfs.keyspace.getMetadata();
        if (find(cfs.name) != cfs)
            return keyspace;
        Map<String, UserType> types = new java.util.TreeMap<>();
        cfs.metadata().columns().forEach(column -> userTypes(column.type, types));
        return keyspace.withSwapped(Types.of(types.values().toArray(UserType[]::new)));
    }

    private static void userTypes(AbstractType<?> type, Map<String, UserType> types)
    {
        if (type.unwrap().isUDT())
        {
            UserType user = (UserType) type.unwrap();
            types.put(user.getNameAsString(), new UserType(user.keyspace, user.name, user.fieldNames(), user.fieldTypes(), true));
        }
        type.unwrap().subTypes().forEach(inner -> userTypes(inner, types));
    }

    private static AbstractType<?> type(JsonNode name)
    {
        return TypeParser.parse(name.textValue());
    }
}
