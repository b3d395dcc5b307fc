package compactor.interop;

import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;

import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.io.sstable.Descriptor;
import org.apache.cassandra.io.sstable.format.SSTableReader;
import org.apache.cassandra.io.util.RandomAccessReader;
import org.apache.cassandra.utils.ByteBufferUtil;

/** SHA-256 of each component and of the uncompressed content of Data.db, to look for byte parity. */
final class Hashes
{
    private Hashes()
    {
    }

    static ObjectNode run(ColumnFamilyStore cfs, String data) throws Exception
    {
        ObjectNode result = Server.JSON.createObjectNode();
        Path file = Path.of(data);
        String prefix = file.getFileName().toString().replace("Data.db", "");
        for (Path component : Stage.components(file))
        {
            MessageDigest digest = MessageDigest.getInstance("SHA-256");
            digest.update(Files.readAllBytes(component));
            result.put(component.getFileName().toString().substring(prefix.length()), hex(digest));
        }
        Descriptor staged = Stage.stageIn(cfs, file);
        try
        {
            SSTableReader reader = SSTableReader.openNoValidation(staged, staged.discoverComponents(), cfs);
            try (RandomAccessReader in = reader.openDataReader())
            {
                MessageDigest digest = MessageDigest.getInstance("SHA-256");
                byte[] buffer = new byte[1 << 16];
                int read;
                while ((read = in.read(buffer)) > 0)
                    digest.update(buffer, 0, read);
                result.put("Data.db:uncompressed", hex(digest));
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
        return result;
    }

    private static String hex(MessageDigest digest)
    {
        return ByteBufferUtil.bytesToHex(ByteBuffer.wrap(digest.digest()));
    }
}
