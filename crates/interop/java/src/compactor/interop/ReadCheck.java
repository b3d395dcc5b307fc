package compactor.interop;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

import org.apache.cassandra.db.DecoratedKey;
import org.apache.cassandra.db.DeletionTime;
import org.apache.cassandra.db.Slice;
import org.apache.cassandra.db.Slices;
import org.apache.cassandra.db.filter.ColumnFilter;
import org.apache.cassandra.db.rows.Row;
import org.apache.cassandra.db.rows.Unfiltered;
import org.apache.cassandra.db.rows.UnfilteredRowIterator;
import org.apache.cassandra.io.sstable.ISSTableScanner;
import org.apache.cassandra.io.sstable.SSTableReadsListener;
import org.apache.cassandra.io.sstable.format.SSTableReader;
import org.apache.cassandra.io.sstable.format.SSTableReaderWithFilter;
import org.apache.cassandra.io.sstable.format.big.BigTableReader;
import org.apache.cassandra.io.sstable.format.big.RowIndexEntry;
import org.apache.cassandra.io.sstable.format.bti.BtiTableReader;
import org.apache.cassandra.io.sstable.format.bti.Tries;

/**
 * Reads as a query does, compared with a full scan: each key through filter and index, whole and in slices, in both
 * directions.
 */
final class ReadCheck
{
    /** Partitions without promoted index that are sliced; all those with one are. */
    private static final int SMALL_PARTITIONS = 30;
    /** Rows of a partition with a row trie that are read one by one. */
    private static final int SINGLE_ROWS = 400;

    private final SSTableReaderWithFilter reader;
    private final Findings findings;
    private int sliced;

    private ReadCheck(SSTableReaderWithFilter reader, Findings findings)
    {
        this.reader = reader;
        this.findings = findings;
    }

    static void run(SSTableReader reader, Findings findings) throws Exception
    {
        new ReadCheck((SSTableReaderWithFilter) reader, findings).all();
    }

    private void all() throws Exception
    {
        DecoratedKey previous = null;
        long partitions = 0;
        try (ISSTableScanner scanner = reader.getScanner())
        {
            while (scanner.hasNext())
            {
                try (UnfilteredRowIterator scan = scanner.next())
                {
                    DecoratedKey key = scan.partitionKey();
                    if (previous != null && previous.compareTo(key) >= 0)
                        findings.add("reads", "keys out of order: " + previous + " before " + key);
                    previous = key;
                    partition(new Partition(scan));
                    partitions++;
                }
            }
        }
        findings.equal("reads", "last key", reader.getLast(), previous);
        if (partitions == 0)
            findings.add("reads", "there is no partition");
    }

    private void partition(Partition scan) throws Exception
    {
        if (!reader.mayContainAssumingKeyIsInRange(scan.key))
            findings.add("reads", "the filter denies " + scan.key);
        int blocks = blocks(scan.key);
        if (blocks < 0)
        {
            findings.add("reads", "point lookup does not find " + scan.key);
            return;
        }
        whole(scan, false);
        whole(scan, true);
        boolean indexed = blocks > 0;
        if (reader.metadata().clusteringColumns().isEmpty() || scan.unfiltereds.isEmpty() || (!indexed && sliced++ >= SMALL_PARTITIONS))
            return;
        List<Slice> slices = Slicing.slices(reader.metadata().comparator, scan.unfiltereds);
        for (Slice slice : slices)
            slice(scan, Slices.with(reader.metadata().comparator, slice));
        for (Slices several : Slicing.pairs(reader.metadata().comparator, slices))
            slice(scan, several);
        // The row trie finds rows by bytes that are compared nowhere else, so each row is also read alone.
        if (indexed && reader instanceof BtiTableReader)
            for (Slice slice : Slicing.rows(scan.unfiltereds, SINGLE_ROWS))
                slice(scan, Slices.with(reader.metadata().comparator, slice));
    }

    /** Blocks of the partition's row index, 0 without one; -1 if a point lookup does not find the partition. */
    private int blocks(DecoratedKey key)
    {
        if (reader instanceof BtiTableReader)
            return Tries.blocks((BtiTableReader) reader, key);
        RowIndexEntry entry = ((BigTableReader) reader).getRowIndexEntry(key, SSTableReader.Operator.EQ);
        return entry == null ? -1 : entry.blockCount();
    }

    private void whole(Partition scan, boolean reversed) throws Exception
    {
        try (UnfilteredRowIterator read = read(scan.key, Slices.ALL, reversed))
        {
            String what = "partition " + scan.key + (reversed ? " in reverse" : "");
            findings.equal("reads", what + ", deletion", scan.deletion, read.partitionLevelDeletion());
            findings.equal("reads", what + ", static row", Canonical.row(scan.staticRow), Canonical.row(read.staticRow()));
            compare(what, scan.unfiltereds, drain(read), reversed);
        }
    }

    private void slice(Partition scan, Slices slices) throws Exception
    {
        List<Unfiltered> expected = new ArrayList<>();
        for (Slice slice : slices)
            expected.addAll(Slicing.cut(reader.metadata().comparator, scan.unfiltereds, slice));
        for (boolean reversed : new boolean[]{ false, true })
        {
            try (UnfilteredRowIterator read = read(scan.key, slices, reversed))
            {
                String what = "slices " + slices + " of " + scan.key + (reversed ? " in reverse" : "");
                List<Unfiltered> got = drain(read);
                // Items that Cassandra considers equal have the same text. Text is slow, so only items that differ are
                // compared by it.
                if (!expected.equals(got))
                    compare(what, expected, got, reversed);
            }
        }
    }

    private void compare(String what, List<Unfiltered> expected, List<Unfiltered> read, boolean reversed)
    {
        if (!reversed)
        {
            same(what, Slicing.lines(expected), Slicing.lines(read));
            return;
        }
        // A reversed read goes through an in-memory partition, which may split or join markers: compare rows and ranges.
        same(what, Slicing.rows(reader.metadata(), expected), Slicing.rows(reader.metadata(), read));
        same(what, Slicing.ranges(reader.metadata().comparator, expected), Slicing.ranges(reader.metadata().comparator, read));
    }

    private void same(String what, List<?> wanted, List<?> got)
    {
        if (wanted.equals(got))
            return;
        int at = 0;
        while (at < wanted.size() && at < got.size() && wanted.get(at).equals(got.get(at)))
            at++;
        findings.add("reads", what + ": item " + at + " of " + wanted.size() + " (" + got.size() + " read): expected "
                              + item(wanted, at) + ", found " + item(got, at));
    }

    private static String item(List<?> items, int at)
    {
        if (at >= items.size())
            return "the end";
        String line = items.get(at).toString();
        return line.length() > 400 ? line.substring(0, 400) + "…" : line;
    }

    private UnfilteredRowIterator read(DecoratedKey key, Slices slices, boolean reversed)
    {
        return reader.rowIterator(key, slices, ColumnFilter.all(reader.metadata()), reversed, SSTableReadsListener.NOOP_LISTENER);
    }

    /** Returns all items in the order of the table, whatever the order of the read. */
    private static List<Unfiltered> drain(UnfilteredRowIterator read)
    {
        List<Unfiltered> items = new ArrayList<>();
        while (read.hasNext())
            items.add(read.next());
        if (read.isReverseOrder())
            Collections.reverse(items);
        return items;
    }

    /** A partition as the scan returned it. */
    private static final class Partition
    {
        private final DecoratedKey key;
        private final DeletionTime deletion;
        private final Row staticRow;
        private final List<Unfiltered> unfiltereds;

        Partition(UnfilteredRowIterator scan)
        {
            key = scan.partitionKey();
            deletion = scan.partitionLevelDeletion();
            staticRow = scan.staticRow();
            unfiltereds = drain(scan);
        }
    }
}
