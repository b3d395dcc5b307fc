package compactor.interop.daemon;

import org.apache.cassandra.config.DatabaseDescriptor;
import org.apache.cassandra.tools.NodeTool;

/**
 * nodetool of releases before 4.0, which ends the JVM. On newer Java it logs that it cannot unmap files, and asks the
 * configuration what to do about it, which it has not read.
 */
public final class NodetoolOnce
{
    private NodetoolOnce() {}

    public static void main(String[] arguments) throws Exception
    {
        DatabaseDescriptor.clientInitialization();
        NodeTool.main(arguments);
    }
}
