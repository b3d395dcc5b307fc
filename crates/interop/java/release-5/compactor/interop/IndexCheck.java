package compactor.interop;

import org.apache.cassandra.io.sstable.KeyReader;
import org.apache.cassandra.io.sstable.format.SSTableReader;

/**
 * Index.db as Cassandra 5 reads it: where each partition begins. Its promoted indexes are checked elsewhere: their
 * bytes are compared with those that Cassandra itself writes for the same data, and they are read in slices.
 */
final class IndexCheck
{
    private IndexCheck()
    {
    }

    static void run(SSTableReader reader, Findings findings) throws Exception
    {
        long last = -1;
        try (KeyReader index = reader.keyReader())
        {
            for (; !index.isExhausted(); index.advance())
            {
                if (index.dataPosition() <= last)
                    findings.add("index", "position " + index.dataPosition() + " follows " + last);
                last = index.dataPosition();
            }
        }
        if (last >= reader.uncompressedLength())
            findings.add("index", "position " + last + " is beyond the end of Data.db");
    }
}
