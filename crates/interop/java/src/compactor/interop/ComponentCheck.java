package compactor.interop;

import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeSet;
import java.util.zip.CRC32;

import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.io.sstable.Descriptor;

/** Checks the set of files, TOC.txt, CompressionInfo.db with the chunks of Data.db, and CRC.db. */
final class ComponentCheck
{
    private ComponentCheck()
    {
    }

    static void run(ColumnFamilyStore cfs, Descriptor staged, Findings findings) throws Exception
    {
        boolean compressed = Files.exists(Bytes.path(staged, "CompressionInfo.db"));
        TreeSet<String> expected = new TreeSet<>();
        java.util.Collections.addAll(expected, "Data.db", "Statistics.db", "Digest.crc32", "TOC.txt");
        if (staged.getFormat().name().equals("bti"))
            java.util.Collections.addAll(expected, "Partitions.db", "Rows.db");
        else
            java.util.Collections.addAll(expected, "Index.db", "Summary.db");
        expected.add(compressed ? "CompressionInfo.db" : "CRC.db");
        if (cfs.metadata().params.bloomFilterFpChance != 1.0)
            expected.add("Filter.db");
        TreeSet<String> present = new TreeSet<>();
        String prefix = staged.baseFile().name() + "-";
        for (Path component : Stage.components(Bytes.path(staged, "Data.db")))
            present.add(component.getFileName().toString().substring(prefix.length()));
        findings.equal("components", "files", expected, present);
        TreeSet<String> listed = new TreeSet<>(Files.readAllLines(Bytes.path(staged, "TOC.txt"), StandardCharsets.UTF_8));
        findings.equal("components", "TOC.txt", present, listed);
        if (compressed)
            chunks(staged, findings);
        else
            checksums(staged, findings);
    }

    private static void chunks(Descriptor staged, Findings findings) throws Exception
    {
        byte[] info = Bytes.read(staged, "CompressionInfo.db");
        byte[] data = Bytes.read(staged, "Data.db");
        DataInputStream in = new DataInputStream(new ByteArrayInputStream(info));
        String compressor = in.readUTF();
        boolean isLz4 = compressor.equals("LZ4Compressor");
        Map<String, String> params = new HashMap<>();
        params.put("class", compressor);
        int options = in.readInt();
        for (int i = 0; i < options; i++)
        {
            String key = in.readUTF();
            String value = in.readUTF();
            params.put(key, value);
        }
        // Cassandra itself decides whether it knows the compressor and its options.
        org.apache.cassandra.io.compress.ICompressor codec =
            org.apache.cassandra.schema.CompressionParams.fromMap(params).getSstableCompressor();
        int chunkLength = in.readInt();
        if (Integer.bitCount(chunkLength) != 1 || chunkLength < 1024)
            findings.add("compression-info", "chunk length " + chunkLength);
        int maxCompressedLength = in.readInt();
        long dataLength = in.readLong();
        int count = in.readInt();
        long withContent = (dataLength + chunkLength - 1) / chunkLength;
        // An output that was opened early ends in an empty chunk.
        if (count != withContent && count != withContent + 1)
            findings.add("compression-info", count + " chunks for " + dataLength + " bytes");
        // Nothing follows the offsets: a dictionary (pa) belongs to another compressor.
        if (count <= 0 || in.available() != count * 8L)
            throw new IllegalStateException(count + " chunks but " + in.available() + " bytes of offsets");
        long[] offsets = new long[count + 1];
        for (int i = 0; i < count; i++)
            offsets[i] = in.readLong();
        offsets[count] = data.length;
        findings.equal("compression-info", "first offset", 0L, offsets[0]);
        for (int i = 0; i < count; i++)
        {
            int length = Math.toIntExact(offsets[i + 1] - offsets[i] - 4);
            int from = Math.toIntExact(offsets[i]);
            CRC32 crc = new CRC32();
            crc.update(data, from, length);
            ByteBuffer view = ByteBuffer.wrap(data);
            findings.equal("compression-info", "CRC of chunk " + i, (int) crc.getValue(), view.getInt(from + length));
            int plain = (int) Math.max(0, Math.min(chunkLength, dataLength - (long) i * chunkLength));
            if (length >= maxCompressedLength)
            {
                // Stored raw; the last one may be padded to maxCompressedLength.
                findings.equal("compression-info", "length of raw chunk " + i, true, length == chunkLength || i == count - 1);
                continue;
            }
            if (isLz4)
                findings.equal("compression-info", "uncompressed length in chunk " + i, plain, Integer.reverseBytes(view.getInt(from)));
            byte[] out = new byte[plain];
            int written = codec.uncompress(data, from, length, out, 0);
            findings.equal("compression-info", "uncompressed bytes of chunk " + i, plain, written);
        }
        // min_compress_ratio: none given means no limit, otherwise the limit is ceil(chunk length / ratio).
        if (maxCompressedLength != Integer.MAX_VALUE && (maxCompressedLength <= 0 || maxCompressedLength > chunkLength))
            findings.add("compression-info", "max compressed length " + maxCompressedLength);
    }

    private static void checksums(Descriptor staged, Findings findings) throws Exception
    {
        byte[] data = Bytes.read(staged, "Data.db");
        ByteBuffer crcs = ByteBuffer.wrap(Bytes.read(staged, "CRC.db"));
        int chunk = crcs.getInt();
        findings.equal("crc", "chunk size", true, chunk >= 4096 && Integer.bitCount(chunk) == 1);
        for (int from = 0; from < data.length; from += chunk)
        {
            CRC32 crc = new CRC32();
            crc.update(data, from, Math.min(chunk, data.length - from));
            findings.equal("crc", "checksum of chunk at " + from, (int) crc.getValue(), crcs.getInt());
        }
        // An output that was opened early has the checksum of an empty chunk, too.
        if (crcs.remaining() == 4)
            findings.equal("crc", "checksum of no bytes", 0, crcs.getInt());
        findings.equal("crc", "bytes left", 0, crcs.remaining());
    }
}
