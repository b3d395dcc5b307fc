package compactor.interop.daemon;

import org.apache.cassandra.config.DatabaseDescriptor;
import org.apache.cassandra.tools.NodeTool;

/**
 * nodetool of releases before 4.0, which ends the JVM. On newer Java it logs that it cannot unmap files, and reads from
 * the configuration, which it has not loaded, what to do then.
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
