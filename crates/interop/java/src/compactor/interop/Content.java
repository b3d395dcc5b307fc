package compactor.interop;

import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;

import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.io.sstable.Descriptor;
import org.apache.cassandra.io.sstable.format.SSTableReader;
import org.apache.cassandra.io.util.RandomAccessReader;

/** Writes the uncompressed content of Data.db, as Cassandra's own reader has it. */
final class Content
{
    private Content()
    {
    }

    static void run(ColumnFamilyStore cfs, String data, String out) throws Exception
    {
        Descriptor staged = Stage.stageIn(cfs, Path.of(data));
        try
        {
            SSTableReader reader = SSTableReader.openNoValidation(staged, staged.discoverComponents(), cfs);
            try (RandomAccessReader in = reader.openDataReader(); OutputStream to = Files.newOutputStream(Path.of(out)))
            {
                byte[] buffer = new byte[1 << 16];
                int read;
                while ((read = in.read(buffer)) > 0)
                    to.write(buffer, 0, read);
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
