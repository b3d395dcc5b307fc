package compactor.interop;

import java.io.IOException;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.Directories;
import org.apache.cassandra.db.lifecycle.LifecycleTransaction;
import org.apache.cassandra.io.sstable.Descriptor;

/** A node's handling of the files of unfinished transactions. */
final class Leftovers
{
    private Leftovers()
    {
    }

    /** The directory of the table's SSTables, and those that a node would open: none of an unfinished transaction. */
    static ObjectNode live(ColumnFamilyStore cfs)
    {
        ObjectNode result = Server.JSON.createObjectNode();
        result.put("directory", cfs.getDirectories().getCFDirectories().get(0).absolutePath());
        ArrayNode live = result.putArray("live");
        Directories.SSTableLister lister = cfs.getDirectories()
                                              .sstableLister(Directories.OnTxnErr.THROW)
                                              .skipTemporary(true);
        for (Descriptor descriptor : lister.list().keySet())
            live.add(descriptor.baseFile().absolutePath());
        return result;
    }

    /** Removes leftovers as a node does when it starts. */
    static void remove(ColumnFamilyStore cfs) throws IOException
    {
        if (!LifecycleTransaction.removeUnfinishedLeftovers(cfs))
            throw new IOException("a transaction log cannot be read");
        LifecycleTransaction.waitForDeletions();
    }
}
