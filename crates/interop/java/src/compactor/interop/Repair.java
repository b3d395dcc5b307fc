package compactor.interop;

import java.io.IOException;
import java.nio.file.Path;

import com.fasterxml.jackson.databind.JsonNode;

import org.apache.cassandra.io.sstable.Descriptor;
import org.apache.cassandra.io.util.File;
import org.apache.cassandra.utils.TimeUUID;

/** Writes a repair state into an SSTable's Statistics.db, as the end of a repair session does. */
final class Repair
{
    private Repair()
    {
    }

    static void set(JsonNode request) throws IOException
    {
        Descriptor descriptor = Descriptor.fromFileWithComponent(new File(Path.of(Operations.text(request, "data"))), false).left;
        TimeUUID pending = request.hasNonNull("pending") ? TimeUUID.fromString(request.get("pending").textValue()) : null;
        descriptor.getMetadataSerializer().mutateRepairMetadata(descriptor,
                                                                request.get("repaired_at").longValue(),
                                                                pending,
                                                                request.get("transient").booleanValue());
    }
}
