package compactor.interop;

import java.io.BufferedWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.rows.UnfilteredRowIterator;
import org.apache.cassandra.io.sstable.Descriptor;
import org.apache.cassandra.io.sstable.ISSTableScanner;
import org.apache.cassandra.io.sstable.format.SSTableReader;

/** Writes everything that a full scan of one SSTable returns, as canonical JSON lines. */
final class Dump
{
    private Dump()
    {
    }

    static long run(ColumnFamilyStore cfs, String data, String out) throws Exception
    {
        Descriptor staged = Stage.stageIn(cfs, Path.of(data));
        try
        {
            SSTableReader reader = SSTableReader.openNoValidation(staged, staged.discoverComponents(), cfs);
            try
            {
                return scan(reader, Path.of(out));
            }
            finally
            {
                reader.selfRef().release();
            }
        }
        finally
        {
            Stage.remove(staged);
        }
    }

    /** Everything that a scan of the reader returns. */
    static long scan(SSTableReader reader, Path out) throws Exception
    {
        long lines = 0;
        try (ISSTableScanner scanner = reader.getScanner();
             BufferedWriter writer = Files.newBufferedWriter(out, StandardCharsets.UTF_8))
        {
            while (scanner.hasNext())
            {
                try (UnfilteredRowIterator partition = scanner.next())
                {
                    lines += line(writer, Canonical.partition(partition.partitionKey(), partition.partitionLevelDeletion()));
                    if (!partition.staticRow().isEmpty())
                        lines += line(writer, Canonical.row(partition.staticRow()));
                    while (partition.hasNext())
                        lines += line(writer, Canonical.unfiltered(partition.next()));
                }
            }
        }
        return lines;
    }

    private static int line(BufferedWriter writer, com.fasterxml.jackson.databind.JsonNode node) throws Exception
    {
        writer.write(Server.JSON.writeValueAsString(node));
        writer.write('\n');
        return 1;
    }
}
