package compactor.interop;

import java.nio.file.Path;
import java.util.List;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.compaction.OperationType;
import org.apache.cassandra.db.lifecycle.LifecycleTransaction;
import org.apache.cassandra.io.sstable.Descriptor;
import org.apache.cassandra.io.sstable.IScrubber;
import org.apache.cassandra.io.sstable.format.SSTableFormat;
import org.apache.cassandra.io.sstable.format.SSTableReader;

/** Cassandra's own scrub of one SSTable, with values checked and damaged rows of counters left out. */
final class Scrub
{
    private Scrub()
    {
    }

    static ObjectNode run(ColumnFamilyStore cfs, JsonNode request) throws Exception
    {
        Node.empty(cfs);
        ObjectNode result = Server.JSON.createObjectNode();
        ArrayNode files = result.putArray("outputs");
        try
        {
            // Not linked: opening a damaged SSTable repairs some of its components in place.
            Descriptor staged = Stage.stageIn(cfs, Path.of(Operations.text(request, "data")), false);
            SSTableReader reader = Stage.open(cfs, staged);
            cfs.addSSTables(List.of(reader));
            LifecycleTransaction txn = cfs.getTracker().tryModify(List.of(reader), OperationType.SCRUB);
            if (txn == null)
                throw new IllegalStateException("the SSTable cannot be marked as being scrubbed");
            SSTableFormat<?, ?> format = staged.getFormat();
            IScrubber.Options options = IScrubber.options().checkData().skipCorrupted().build();
            IScrubber scrubber = format.getScrubber(cfs, txn, Release.noOutput(), options);
            try
            {
                scrubber.scrub();
            }
            finally
            {
                close(scrubber);
            }
            int generation = 1;
            for (SSTableReader output : cfs.getLiveSSTables())
                files.add(Stage.copyOut(output, Path.of(Operations.text(request, "out")), generation++).toString());
        }
        finally
        {
            Node.empty(cfs);
        }
        return result;
    }

    /** With assertions on, a reader that could not read its last chunk does not close. */
    private static void close(IScrubber scrubber)
    {
        try
        {
            scrubber.close();
        }
        catch (AssertionError e)
        {
            // The salvaged SSTables have been published by then.
        }
    }
}
