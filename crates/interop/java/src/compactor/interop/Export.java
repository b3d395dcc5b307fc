package compactor.interop;

import java.io.BufferedOutputStream;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;

import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.io.sstable.Descriptor;
import org.apache.cassandra.io.sstable.ISSTableScanner;
import org.apache.cassandra.io.sstable.format.SSTableReader;
import org.apache.cassandra.schema.TableMetadata;
import org.apache.cassandra.schema.TableMetadataRef;
import org.apache.cassandra.tools.Util;

/**
 * Output of {@code sstabledump -l}, with the metadata that tool derives from Statistics.db alone.
 * SSTableExport.main itself initialises a second configuration and exits, hence the calls below it.
 */
final class Export
{
    private Export()
    {
    }

    static void run(ColumnFamilyStore cfs, String data, String out) throws Exception
    {
        Descriptor staged = Stage.stageIn(cfs, Path.of(data));
        try
        {
            TableMetadata metadata = Util.metadataFromSSTable(staged);
            SSTableReader reader = SSTableReader.openNoValidation(null, staged, TableMetadataRef.forOfflineTools(metadata));
            try (ISSTableScanner scanner = reader.getScanner();
                 OutputStream stream = new BufferedOutputStream(Files.newOutputStream(Path.of(out))))
            {
                Release.jsonLines(scanner, metadata, stream);
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
}
