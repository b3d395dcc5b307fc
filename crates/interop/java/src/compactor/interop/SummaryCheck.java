package compactor.interop;

import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.DecoratedKey;
import org.apache.cassandra.io.sstable.Descriptor;
import org.apache.cassandra.io.sstable.Downsampling;
import org.apache.cassandra.io.sstable.KeyReader;
import org.apache.cassandra.io.sstable.format.SSTableReader;
import org.apache.cassandra.io.sstable.format.big.IndexSummaryComponent;
import org.apache.cassandra.io.sstable.indexsummary.IndexSummary;
import org.apache.cassandra.io.sstable.indexsummary.IndexSummaryBuilder;
import org.apache.cassandra.io.util.DataOutputBuffer;
import org.apache.cassandra.io.util.File;
import org.apache.cassandra.io.util.FileUtils;
import org.apache.cassandra.utils.ByteBufferUtil;

/** Summary.db: loads, and equals the one that Cassandra builds from Index.db. */
final class SummaryCheck
{
    private SummaryCheck()
    {
    }

    static void load(ColumnFamilyStore cfs, Descriptor staged) throws Exception
    {
        IndexSummaryComponent loaded = IndexSummaryComponent.load(new File(Bytes.path(staged, "Summary.db")), cfs.metadata());
        if (loaded == null)
            throw new IllegalStateException("there is no Summary.db");
        FileUtils.closeQuietly(loaded.indexSummary);
    }

    static void compare(SSTableReader reader, byte[] found, Findings findings) throws Exception
    {
        DecoratedKey first = null;
        DecoratedKey last = null;
        try (KeyReader keys = reader.keyReader();
             IndexSummaryBuilder builder = new IndexSummaryBuilder(reader.estimatedKeys(), reader.metadata().params.minIndexInterval,
                                                                   Downsampling.BASE_SAMPLING_LEVEL))
        {
            while (!keys.isExhausted())
            {
                last = reader.decorateKey(keys.key());
                if (first == null)
                    first = last;
                builder.maybeAddEntry(last, keys.keyPositionForSecondaryIndex());
                keys.advance();
            }
            builder.prepareToCommit();
            try (IndexSummary summary = builder.build(reader.getPartitioner()); DataOutputBuffer out = new DataOutputBuffer())
            {
                IndexSummary.serializer.serialize(summary, out);
                ByteBufferUtil.writeWithLength(first.getKey(), out);
                ByteBufferUtil.writeWithLength(last.getKey(), out);
                String difference = Bytes.difference(out.toByteArray(), found);
                if (difference != null)
                    findings.add("summary", "Summary.db is not the one built from Index.db: " + difference);
            }
        }
    }
}
