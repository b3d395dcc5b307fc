package compactor.interop;

import java.nio.file.Path;

import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.io.sstable.Descriptor;
import org.apache.cassandra.io.sstable.format.SSTableReader;

/**
 * A node's reading of an SSTable, damaged or not: whether the node opens it, reads it to its end, and finds nothing
 * with the extended verifier. No checks of our own run.
 */
final class Judge
{
    private Judge()
    {
    }

    static ObjectNode run(ColumnFamilyStore cfs, String data, String out) throws Exception
    {
        ObjectNode verdict = Server.JSON.createObjectNode();
        Descriptor staged = Stage.stageIn(cfs, Path.of(data), false);
        try
        {
            SSTableReader[] reader = new SSTableReader[1];
            if (!guard(verdict, "open", () -> reader[0] = Stage.open(cfs, staged)))
                return verdict;
            try
            {
                guard(verdict, "read", () -> Dump.scan(reader[0], Path.of(out)));
                guard(verdict, "verify", () -> Verify.extended(cfs, reader[0]));
            }
            finally
            {
                reader[0].selfRef().release();
            }
        }
        finally
        {
            Stage.remove(staged);
        }
        return verdict;
    }

    /** Adds the error of a check under this name, if it fails; returns whether it succeeds. */
    private static boolean guard(ObjectNode verdict, String name, Findings.Check check)
    {
        try
        {
            check.run();
            return true;
        }
        catch (Throwable t)
        {
            verdict.put(name, Errors.chain(t));
            return false;
        }
    }
}
