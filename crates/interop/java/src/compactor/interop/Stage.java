package compactor.interop;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.NavigableSet;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;

import com.fasterxml.jackson.databind.JsonNode;

import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.io.sstable.Component;
import org.apache.cassandra.io.sstable.Descriptor;
import org.apache.cassandra.io.sstable.format.SSTableReader;
import org.apache.cassandra.io.sstable.format.Version;
import org.apache.cassandra.io.util.File;

/**
 * Moves SSTables between directories of the tests and the table's own directory.
 *
 * Data.db and Index.db are hard-linked, other components copied: Cassandra rewrites or deletes Summary, Filter and
 * Statistics in place, and the test's files must not change.
 */
final class Stage
{
    private Stage()
    {
    }

    /** Components of the SSTable that the Data.db file belongs to, found by file name. */
    static List<Path> components(Path data) throws IOException
    {
        return components(data, names(data.toAbsolutePath().getParent()));
    }

    /** The same, from the names of all files in its directory. */
    private static List<Path> components(Path data, NavigableSet<String> names) throws IOException
    {
        String name = data.getFileName().toString();
        if (!name.endsWith("-Data.db"))
            throw new IOException(data + " is not named like a Data.db");
        String prefix = name.substring(0, name.length() - "Data.db".length());
        Path directory = data.toAbsolutePath().getParent();
        return names.tailSet(prefix, true).stream().takeWhile(other -> other.startsWith(prefix)).map(directory::resolve).collect(Collectors.toList());
    }

    private static NavigableSet<String> names(Path directory) throws IOException
    {
        try (Stream<Path> files = Files.list(directory))
        {
            return files.map(file -> file.getFileName().toString()).collect(Collectors.toCollection(TreeSet::new));
        }
    }

    /** The Data.db files that a request names. */
    static List<Path> dataFiles(JsonNode request, String name)
    {
        return Operations.strings(request, name).stream().map(Path::of).collect(Collectors.toList());
    }

    /** Links or copies the SSTable into the table's directory under a fresh generation. */
    static Descriptor stageIn(ColumnFamilyStore cfs, Path data) throws IOException
    {
        return stageIn(cfs, data, true);
    }

    static Descriptor stageIn(ColumnFamilyStore cfs, Path data, boolean link) throws IOException
    {
        return stageIn(cfs, data, components(data), link);
    }

    private static Descriptor stageIn(ColumnFamilyStore cfs, Path data, List<Path> components, boolean link) throws IOException
    {
        Descriptor source = Descriptor.fromFileWithComponent(new File(data), false).left;
        Version version = source.version;
        if (!version.isCompatible())
            throw new IOException(data + ": this server cannot read version " + version);
        Descriptor target = cfs.newSSTableDescriptor(cfs.getDirectories().getDirectoryForNewSSTables(), version);
        String prefix = data.getFileName().toString().replace("Data.db", "");
        for (Path component : components)
        {
            String suffix = component.getFileName().toString().substring(prefix.length());
            Path to = target.baseFile().parent().toPath().resolve(target.baseFile().name() + "-" + suffix);
            if (link && (suffix.equals("Data.db") || suffix.equals("Index.db")))
                linkOrCopy(component, to);
            else
                Files.copy(component, to);
        }
        return target;
    }

    /** Copies a reader's components into a directory, renamed to the given generation; returns the new Data.db. */
    static Path copyOut(SSTableReader reader, Path directory, int generation) throws IOException
    {
        Files.createDirectories(directory);
        String prefix = reader.descriptor.version + "-" + generation + "-" + reader.descriptor.getFormat().name() + "-";
        String own = reader.descriptor.baseFile().name() + "-";
        for (Path component : components(reader.descriptor.baseFile().parent().toPath().resolve(own + "Data.db")))
        {
            String suffix = component.getFileName().toString().substring(own.length());
            Files.copy(component, directory.resolve(prefix + suffix), StandardCopyOption.REPLACE_EXISTING);
        }
        return directory.resolve(prefix + "Data.db");
    }

    /** Moves an SSTable that no reader has open into a directory, likewise. */
    static Path moveOut(Descriptor descriptor, Path directory, int generation) throws IOException
    {
        Files.createDirectories(directory);
        String own = descriptor.baseFile().name() + "-";
        String prefix = descriptor.version + "-" + generation + "-" + descriptor.getFormat().name() + "-";
        for (Path component : components(Bytes.path(descriptor, "Data.db")))
            Files.move(component, directory.resolve(prefix + component.getFileName().toString().substring(own.length())));
        return directory.resolve(prefix + "Data.db");
    }

    /** Removes what {@link #stageIn} put there. */
    static void remove(Descriptor staged) throws IOException
    {
        for (Component component : staged.discoverComponents())
            Files.deleteIfExists(staged.fileFor(component).toPath());
    }

    /** Stages and opens each; a directory is listed once, however many of them it holds. */
    static List<SSTableReader> open(ColumnFamilyStore cfs, List<Path> dataFiles) throws IOException
    {
        Map<Path, NavigableSet<String>> listed = new HashMap<>();
        List<SSTableReader> readers = new ArrayList<>();
        for (Path data : dataFiles)
        {
            Path directory = data.toAbsolutePath().getParent();
            if (!listed.containsKey(directory))
                listed.put(directory, names(directory));
            readers.add(open(cfs, stageIn(cfs, data, components(data, listed.get(directory)), true)));
        }
        return readers;
    }

    /** Opens a staged SSTable as a live node would: with its filter, validated, its summary repaired when damaged. */
    static SSTableReader open(ColumnFamilyStore cfs, Descriptor staged)
    {
        Set<Component> components = staged.discoverComponents();
        return SSTableReader.open(cfs, staged, components, cfs.metadata);
    }

    private static void linkOrCopy(Path from, Path to) throws IOException
    {
        try
        {
            Files.createLink(to, from);
        }
        catch (IOException | UnsupportedOperationException e)
        {
            Files.copy(from, to);
        }
    }
}
