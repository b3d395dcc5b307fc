package compactor.interop;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

import org.apache.cassandra.db.ClusteringPrefix;
import org.apache.cassandra.db.DeletionTime;
import org.apache.cassandra.db.rows.BTreeRow;
import org.apache.cassandra.db.rows.DeserializationHelper;
import org.apache.cassandra.db.rows.RangeTombstoneMarker;
import org.apache.cassandra.db.rows.Unfiltered;
import org.apache.cassandra.db.rows.UnfilteredSerializer;
import org.apache.cassandra.io.sstable.IndexInfo;
import org.apache.cassandra.io.sstable.format.SSTableReader;
import org.apache.cassandra.io.sstable.format.Version;
import org.apache.cassandra.io.sstable.format.big.BigTableKeyReader;
import org.apache.cassandra.io.sstable.format.big.RowIndexEntry;
import org.apache.cassandra.io.util.DataOutputBuffer;
import org.apache.cassandra.io.util.RandomAccessReader;
import org.apache.cassandra.utils.ByteBufferUtil;

/**
 * Compares Index.db with one rebuilt from Data.db, byte for byte. Only the offsets of the blocks of a promoted index
 * are taken from the file; everything else follows from the data, also that blocks begin at rows.
 */
final class IndexCheck
{
    /** Cassandra's default column_index_size for the BIG format. */
    private static final long BLOCK = 64 * 1024;

    private IndexCheck()
    {
    }

    static void run(SSTableReader reader, Findings findings) throws Exception
    {
        Version version = reader.descriptor.version;
        IndexInfo.Serializer infos = IndexInfo.serializer(version, reader.header);
        try (BigTableKeyReader index = (BigTableKeyReader) reader.keyReader(true);
             RandomAccessReader data = reader.openDataReader();
             DataOutputBuffer expected = new DataOutputBuffer())
        {
            while (!index.isExhausted())
            {
                data.seek(index.dataPosition());
                entry(reader, index, data, infos, expected, findings);
                index.advance();
            }
            String difference = Bytes.difference(expected.toByteArray(), Bytes.read(reader.descriptor, "Index.db"));
            if (difference != null)
                findings.add("index", "Index.db differs from the one rebuilt from Data.db: " + difference);
            findings.equal("index", "end of the last partition", reader.uncompressedLength(), data.getFilePointer());
        }
    }

    private static void entry(SSTableReader reader, BigTableKeyReader index, RandomAccessReader data,
                              IndexInfo.Serializer infos, DataOutputBuffer out, Findings findings) throws Exception
    {
        Version version = reader.descriptor.version;
        long start = data.getFilePointer();
        List<Long> blockOffsets = blockOffsets(index);
        ByteBuffer key = ByteBufferUtil.readWithShortLength(data);
        DeletionTime deletion = DeletionTime.getSerializer(version).deserialize(data);
        DeserializationHelper helper = new DeserializationHelper(reader.metadata(), version.correspondingMessagingVersion(),
                                                                 DeserializationHelper.Flag.LOCAL);
        if (reader.header.hasStatic())
            UnfilteredSerializer.serializer.deserializeStaticRow(data, reader.header, helper);
        long headerLength = data.getFilePointer() - start;

        ByteBufferUtil.writeWithShortLength(key, out);
        out.writeUnsignedVInt(start);
        List<IndexInfo> blocks = new ArrayList<>();
        ClusteringPrefix<?> first = null;
        ClusteringPrefix<?> last = null;
        DeletionTime open = null;
        long blockStart = headerLength;
        long lastStart = headerLength;
        int border = 1;
        while (true)
        {
            long at = data.getFilePointer() - start;
            boolean newBlock = border < blockOffsets.size() && at == blockOffsets.get(border);
            Unfiltered unfiltered = UnfilteredSerializer.serializer.deserialize(data, reader.header, helper, BTreeRow.sortedBuilder());
            if (newBlock || unfiltered == null)
            {
                if (first != null)
                    blocks.add(new IndexInfo(first, last, blockStart, at - blockStart, open));
                first = null;
                blockStart = at;
                border++;
            }
            if (unfiltered == null)
                break;
            if (first == null)
                first = unfiltered.clustering();
            lastStart = at;
            last = unfiltered.clustering();
            if (unfiltered.isRangeTombstoneMarker())
            {
                RangeTombstoneMarker marker = (RangeTombstoneMarker) unfiltered;
                open = marker.isOpen(false) ? marker.openDeletionTime(false) : null;
            }
        }
        if (blockOffsets.isEmpty())
        {
            out.writeUnsignedVInt32(0);
            // A block would have ended before the last row or marker, which then begins another.
            if (lastStart - headerLength >= BLOCK)
                findings.add("index", "no promoted index for a partition of " + (data.getFilePointer() - start) + " bytes at " + start);
            return;
        }
        lastWidth(blocks);
        compare(index, start, blocks, findings);
        promoted(version, infos, out, deletion, headerLength, blocks);
    }

    /**
     * BigFormatPartitionWriter.finish writes the END byte before it closes the last block, so the width of that block has
     * it, unless the last row already filled the block and closed it.
     */
    private static void lastWidth(List<IndexInfo> blocks)
    {
        IndexInfo last = blocks.get(blocks.size() - 1);
        if (last.width < BLOCK)
            blocks.set(blocks.size() - 1, new IndexInfo(last.firstName, last.lastName, last.offset, last.width + 1, last.endOpenMarker));
    }

    /** Field by field, for messages that contain more than a byte position. */
    private static void compare(BigTableKeyReader index, long start, List<IndexInfo> blocks, Findings findings) throws Exception
    {
        RowIndexEntry entry = index.rowIndexEntry();
        findings.equal("index", "blocks of the partition at " + start, blocks.size(), entry.blockCount());
        try (RowIndexEntry.IndexInfoRetriever retriever = entry.openWithIndex(index.indexFile()))
        {
            for (int i = 0; i < Math.min(entry.blockCount(), blocks.size()); i++)
            {
                String what = "block " + i + " of " + blocks.size() + " of the partition at " + start + ", ";
                IndexInfo expected = blocks.get(i);
                IndexInfo found = retriever.columnsIndex(i);
                findings.equal("index", what + "first name", name(expected.firstName), name(found.firstName));
                findings.equal("index", what + "last name", name(expected.lastName), name(found.lastName));
                findings.equal("index", what + "offset", expected.offset, found.offset);
                findings.equal("index", what + "width", expected.width, found.width);
                findings.equal("index", what + "open marker", expected.endOpenMarker, found.endOpenMarker);
                if (i + 1 < blocks.size() && expected.width < BLOCK)
                    findings.add("index", what + "only " + expected.width + " bytes wide");
            }
        }
    }

    private static String name(ClusteringPrefix<?> prefix)
    {
        return prefix.kind() + Canonical.values(prefix).toString();
    }

    private static IndexInfo first(List<IndexInfo> blocks)
    {
        return blocks.get(0);
    }

    /** Offsets of the blocks, as the file has them. */
    private static List<Long> blockOffsets(BigTableKeyReader index) throws Exception
    {
        List<Long> blockOffsets = new ArrayList<>();
        RowIndexEntry entry = index.rowIndexEntry();
        if (entry.blockCount() == 0)
            return blockOffsets;
        try (RowIndexEntry.IndexInfoRetriever retriever = entry.openWithIndex(index.indexFile()))
        {
            for (int block = 0; block < entry.blockCount(); block++)
                blockOffsets.add(retriever.columnsIndex(block).offset);
        }
        return blockOffsets;
    }

    private static void promoted(Version version, IndexInfo.Serializer infos, DataOutputBuffer out, DeletionTime deletion,
                                 long headerLength, List<IndexInfo> blocks) throws Exception
    {
        try (DataOutputBuffer body = new DataOutputBuffer(); DataOutputBuffer entries = new DataOutputBuffer())
        {
            body.writeUnsignedVInt(headerLength);
            DeletionTime.getSerializer(version).serialize(deletion, body);
            body.writeUnsignedVInt32(blocks.size());
            List<Integer> offsets = new ArrayList<>();
            for (IndexInfo block : blocks)
            {
                offsets.add(Math.toIntExact(entries.position()));
                infos.serialize(block, entries);
            }
            body.write(entries.asNewBuffer());
            for (int offset : offsets)
                body.writeInt(offset);
            out.writeUnsignedVInt32(Math.toIntExact(body.position()));
            out.write(body.asNewBuffer());
        }
    }
}
