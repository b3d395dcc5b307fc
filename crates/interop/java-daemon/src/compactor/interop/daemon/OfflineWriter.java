package compactor.interop.daemon;

import java.util.Map;
import java.util.Set;

import org.apache.cassandra.io.sstable.CQLSSTableWriter;

/** CQLSSTableWriter, which writes SSTables without a node: DIRECTORY KEYSPACE.TABLE ROWS [sorted]. */
public final class OfflineWriter
{
    private OfflineWriter() {}

    public static void main(String[] arguments)
    {
        try
        {
            write(arguments);
            System.exit(0);
        }
        catch (Throwable e)
        {
            // Cassandra's threads would keep the JVM running.
            e.printStackTrace();
            System.exit(1);
        }
    }

    private static void write(String[] arguments) throws Exception
    {
        String table = arguments[1];
        int rows = Integer.parseInt(arguments[2]);
        CQLSSTableWriter.Builder builder =
            CQLSSTableWriter.builder()
                            .inDirectory(arguments[0])
                            .forTable("CREATE TABLE " + table + " (k int, c int, v text, m map<int, text>, s set<int>, PRIMARY KEY (k, c))")
                            .using("INSERT INTO " + table + " (k, c, v, m, s) VALUES (?, ?, ?, ?, ?) USING TIMESTAMP ? AND TTL ?");
        // Sorted writes need keys in the order of their tokens: a single key suffices.
        boolean sorted = arguments.length > 3;
        if (sorted)
            builder.sorted();
        try (CQLSSTableWriter writer = builder.build())
        {
            for (int n = 0; n < rows; n++)
                writer.addRow(sorted ? 1 : n % 97, n, "value " + n, Map.of(n, "m"), Set.of(n), 1_700_000_000_000_000L + n,
                              n % 5 == 0 ? 8_640_000 : 0);
        }
    }
}
