package compactor.interop;

import org.apache.cassandra.io.sstable.KeyReader;
import org.apache.cassandra.io.sstable.format.SSTableReader;
import org.apache.cassandra.io.util.DataInputBuffer;
import org.apache.cassandra.io.util.DataOutputBuffer;
import org.apache.cassandra.utils.BloomFilter;
import org.apache.cassandra.utils.BloomFilterSerializer;
import org.apache.cassandra.utils.FilterFactory;
import org.apache.cassandra.utils.IFilter;

/** Checks that Filter.db has the bits of every key, and no others. */
final class FilterCheck
{
    private FilterCheck()
    {
    }

    static void compare(SSTableReader reader, byte[] found, Findings findings) throws Exception
    {
        double chance = reader.metadata().params.bloomFilterFpChance;
        if (found == null)
        {
            findings.equal("filter", "false-positive chance without a Filter.db", 1.0, chance);
            return;
        }
        BloomFilterSerializer serializer = BloomFilterSerializer.forVersion(reader.descriptor.version.hasOldBfFormat());
        long keysSeen = 0;
        try (BloomFilter filter = serializer.deserialize(new DataInputBuffer(found));
             KeyReader keys = reader.keyReader())
        {
            filter.clear();
            while (!keys.isExhausted())
            {
                filter.add(reader.decorateKey(keys.key()));
                keysSeen++;
                keys.advance();
            }
            try (DataOutputBuffer out = new DataOutputBuffer())
            {
                filter.serialize(out, reader.descriptor.version.hasOldBfFormat());
                String difference = Bytes.difference(out.toByteArray(), found);
                if (difference != null)
                    findings.add("filter", "Filter.db does not hold exactly the keys of the index: " + difference);
            }
            try (IFilter wanted = FilterFactory.getFilter(keysSeen, chance))
            {
                BloomFilter ideal = (BloomFilter) wanted;
                findings.equal("filter", "number of hash functions", ideal.hashCount, filter.hashCount);
                // The size comes from an estimate (HyperLogLog) of the number of keys.
                double ratio = (double) filter.bitset.capacity() / ideal.bitset.capacity();
                if (ratio < 0.9)
                    findings.add("filter", "too few bits: " + filter.bitset.capacity() + " for " + keysSeen + " keys, wanted "
                                           + ideal.bitset.capacity());
            }
        }
    }
}
