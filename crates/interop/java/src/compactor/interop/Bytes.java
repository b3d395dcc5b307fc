package compactor.interop;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

import org.apache.cassandra.io.sstable.Descriptor;

/** Whole component files. */
final class Bytes
{
    private Bytes()
    {
    }

    static Path path(Descriptor descriptor, String component)
    {
        Path base = descriptor.baseFile().toPath();
        return base.resolveSibling(base.getFileName() + "-" + component);
    }

    /** The component's content, or null where it does not exist. */
    static byte[] read(Descriptor descriptor, String component) throws IOException
    {
        Path file = path(descriptor, component);
        return Files.exists(file) ? Files.readAllBytes(file) : null;
    }

    /** Describes the first difference. */
    static String difference(byte[] expected, byte[] found)
    {
        int at = java.util.Arrays.mismatch(expected, found);
        if (at < 0)
            return null;
        return "differs at byte " + at + " (expected " + at(expected, at) + ", found " + at(found, at) + "; lengths "
               + expected.length + " and " + found.length + ")";
    }

    private static String at(byte[] bytes, int position)
    {
        return position < bytes.length ? String.format("%02x", bytes[position]) : "end of file";
    }
}
