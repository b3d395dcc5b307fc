package compactor.interop;

import java.io.PrintStream;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;

import org.apache.cassandra.config.DatabaseDescriptor;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.io.sstable.Descriptor;
import org.apache.cassandra.io.sstable.format.SSTableFormat.Components;
import org.apache.cassandra.io.util.File;
import org.apache.cassandra.tools.SSTableMetadataViewer;

/** Output of {@code sstablemetadata}, without colours. */
final class MetadataText
{
    private static boolean isLoaded;

    private MetadataText()
    {
    }

    static void run(ColumnFamilyStore cfs, String data, String out) throws Exception
    {
        Descriptor staged = Stage.stageIn(cfs, Path.of(data));
        try (PrintStream stream = new PrintStream(out, "UTF-8"))
        {
            load();
            SSTableMetadataViewer viewer = new SSTableMetadataViewer(false, false, 0, TimeUnit.MICROSECONDS, stream);
            Method print = SSTableMetadataViewer.class.getDeclaredMethod("printSStableMetadata", File.class, boolean.class);
            print.setAccessible(true);
            print.invoke(viewer, staged.fileFor(Components.DATA), false);
        }
        finally
        {
            Stage.remove(staged);
        }
    }

    /** Loads the viewer, which insists on a configuration of its own where there is that of a server. */
    private static void load() throws Exception
    {
        if (isLoaded)
            return;
        Field daemon = field("daemonInitialized");
        Field tool = field("toolInitialized");
        boolean before = tool.getBoolean(null);
        daemon.setBoolean(null, false);
        tool.setBoolean(null, true);
        try
        {
            Class.forName("org.apache.cassandra.tools.SSTableMetadataViewer");
        }
        finally
        {
            daemon.setBoolean(null, true);
            tool.setBoolean(null, before);
        }
        isLoaded = true;
    }

    private static Field field(String name) throws Exception
    {
        Field field = DatabaseDescriptor.class.getDeclaredField(name);
        field.setAccessible(true);
        return field;
    }
}
