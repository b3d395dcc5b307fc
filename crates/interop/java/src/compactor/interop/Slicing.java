package compactor.interop;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

import org.apache.cassandra.db.BufferClusteringBound;
import org.apache.cassandra.db.ClusteringBound;
import org.apache.cassandra.db.ClusteringComparator;
import org.apache.cassandra.db.ClusteringPrefix;
import org.apache.cassandra.db.DeletionTime;
import org.apache.cassandra.db.Slice;
import org.apache.cassandra.db.Slices;
import org.apache.cassandra.db.rows.RangeTombstoneBoundMarker;
import org.apache.cassandra.db.filter.ColumnFilter;
import org.apache.cassandra.db.rows.RangeTombstoneMarker;
import org.apache.cassandra.db.rows.Row;
import org.apache.cassandra.db.rows.Unfiltered;
import org.apache.cassandra.schema.TableMetadata;

/** Slices to query, and their expected results, computed from the whole partition. */
final class Slicing
{
    private static final int POSITIONS = 6;

    private Slicing()
    {
    }

    /** Slices between some clusterings of the partition: inclusive, exclusive, open, prefixes, single rows. */
    static List<Slice> slices(ClusteringComparator comparator, List<Unfiltered> unfiltereds)
    {
        List<ByteBuffer[]> at = new ArrayList<>();
        int last = unfiltereds.size() - 1;
        for (int i = 0; i < POSITIONS; i++)
            at.add(values(unfiltereds.get((int) ((long) last * i / (POSITIONS - 1))).clustering()));
        List<Slice> slices = new ArrayList<>();
        for (int i = 0; i < POSITIONS; i++)
        {
            ByteBuffer[] from = at.get(i);
            if (from.length == 0)
                continue;
            slices.add(slice(from, true, from, true));
            slices.add(slice(from, i % 2 == 0, new ByteBuffer[0], true));
            slices.add(slice(new ByteBuffer[0], true, from, i % 2 == 1));
            ByteBuffer[] prefix = Arrays.copyOf(from, 1);
            slices.add(slice(prefix, true, prefix, true));
            slices.add(slice(prefix, false, new ByteBuffer[0], true));
            for (int j = i + 1; j < POSITIONS; j += 2)
            {
                ByteBuffer[] to = at.get(j);
                slices.add(slice(from, true, to, true));
                slices.add(slice(from, false, to, false));
            }
        }
        slices.removeIf(slice -> slice.isEmpty(comparator));
        return slices;
    }

    /** Two slices in one query, where they do not overlap. */
    static List<Slices> pairs(ClusteringComparator comparator, List<Slice> slices)
    {
        List<Slices> pairs = new ArrayList<>();
        for (int i = 0; i + 7 < slices.size(); i += 5)
        {
            Slice left = slices.get(i);
            Slice right = slices.get(i + 7);
            if (comparator.compare(left.end(), right.start()) < 0)
                pairs.add(new Slices.Builder(comparator).add(left).add(right).build());
        }
        return pairs;
    }

    /** Slices of one row each, of all rows or, if there are more than {@code most}, of a sample of them. */
    static List<Slice> rows(List<Unfiltered> unfiltereds, int most)
    {
        List<Slice> slices = new ArrayList<>();
        int step = Math.max(1, unfiltereds.size() / most);
        for (int i = 0; i < unfiltereds.size(); i += step)
        {
            ByteBuffer[] row = values(unfiltereds.get(i).clustering());
            if (unfiltereds.get(i).isRow() && row.length > 0)
                slices.add(slice(row, true, row, true));
        }
        return slices;
    }

    private static Slice slice(ByteBuffer[] from, boolean fromInclusive, ByteBuffer[] to, boolean toInclusive)
    {
        ClusteringBound<?> start = from.length == 0 ? BufferClusteringBound.BOTTOM
                                 : BufferClusteringBound.create(fromInclusive ? ClusteringPrefix.Kind.INCL_START_BOUND
                                                                              : ClusteringPrefix.Kind.EXCL_START_BOUND, from);
        ClusteringBound<?> end = to.length == 0 ? BufferClusteringBound.TOP
                               : BufferClusteringBound.create(toInclusive ? ClusteringPrefix.Kind.INCL_END_BOUND
                                                                          : ClusteringPrefix.Kind.EXCL_END_BOUND, to);
        return Slice.make(start, end);
    }

    private static ByteBuffer[] values(ClusteringPrefix<?> prefix)
    {
        ByteBuffer[] values = new ByteBuffer[prefix.size()];
        for (int i = 0; i < values.length; i++)
            values[i] = prefix.bufferAt(i);
        return values;
    }

    /** The part of a partition inside a slice, its ranges closed at the slice's bounds. */
    static List<Unfiltered> cut(ClusteringComparator comparator, List<Unfiltered> unfiltereds, Slice slice)
    {
        List<Unfiltered> inside = new ArrayList<>();
        DeletionTime open = null;
        boolean started = false;
        for (Unfiltered unfiltered : unfiltereds)
        {
            boolean before = comparator.compare(unfiltered.clustering(), slice.start()) <= 0;
            boolean after = comparator.compare(unfiltered.clustering(), slice.end()) >= 0;
            if (!before && !started)
            {
                started = true;
                if (open != null)
                    inside.add(new RangeTombstoneBoundMarker(slice.start(), open));
            }
            if (after && !before)
                break;
            if (unfiltered.isRangeTombstoneMarker())
            {
                RangeTombstoneMarker marker = (RangeTombstoneMarker) unfiltered;
                open = marker.isOpen(false) ? marker.openDeletionTime(false) : null;
            }
            if (!before)
                inside.add(unfiltered);
        }
        if (open != null)
            inside.add(new RangeTombstoneBoundMarker(slice.end(), open));
        return inside;
    }

    static List<String> lines(List<Unfiltered> unfiltereds)
    {
        List<String> lines = new ArrayList<>();
        for (Unfiltered unfiltered : unfiltereds)
            lines.add(Canonical.unfiltered(unfiltered).toString());
        return lines;
    }

    /** The ranges that the markers make; those that touch and have equal deletions are one. */
    static List<Range> ranges(ClusteringComparator comparator, List<Unfiltered> unfiltereds)
    {
        List<Range> ranges = new ArrayList<>();
        ClusteringBound<?> from = null;
        DeletionTime open = null;
        for (Unfiltered unfiltered : unfiltereds)
        {
            if (unfiltered.isRow())
                continue;
            RangeTombstoneMarker marker = (RangeTombstoneMarker) unfiltered;
            if (marker.isClose(false))
            {
                Range previous = ranges.isEmpty() ? null : ranges.get(ranges.size() - 1);
                Range range = new Range(comparator, from, marker.closeBound(false), open);
                if (previous != null && previous.deletion.equals(open) && comparator.compare(previous.end, from) == 0)
                    ranges.set(ranges.size() - 1, new Range(comparator, previous.start, range.end, open));
                else
                    ranges.add(range);
            }
            if (marker.isOpen(false))
            {
                from = marker.openBound(false);
                open = marker.openDeletionTime(false);
            }
        }
        return ranges;
    }

    /** Rows without the cells of dropped columns, which in-memory partitions do not show. */
    static List<String> rows(TableMetadata metadata, List<Unfiltered> unfiltereds)
    {
        List<String> lines = new ArrayList<>();
        for (Unfiltered unfiltered : unfiltereds)
        {
            if (!unfiltered.isRow())
                continue;
            Row row = (Row) unfiltered;
            if (!metadata.droppedColumns.isEmpty())
                row = row.filter(ColumnFilter.all(metadata), metadata);
            if (row != null)
                lines.add(Canonical.row(row).toString());
        }
        return lines;
    }

    /** A deleted range; equal where its bounds sort equal, since 1.5 and 1.50 are one clustering. */
    static final class Range
    {
        private final ClusteringComparator comparator;
        private final ClusteringBound<?> start;
        private final ClusteringBound<?> end;
        private final DeletionTime deletion;

        Range(ClusteringComparator comparator, ClusteringBound<?> start, ClusteringBound<?> end, DeletionTime deletion)
        {
            this.comparator = comparator;
            this.start = start;
            this.end = end;
            this.deletion = deletion;
        }

        @Override
        public boolean equals(Object other)
        {
            if (!(other instanceof Range))
                return false;
            Range that = (Range) other;
            return comparator.compare(start, that.start) == 0 && comparator.compare(end, that.end) == 0
                   && deletion.equals(that.deletion);
        }

        @Override
        public int hashCode()
        {
            return deletion.hashCode();
        }

        @Override
        public String toString()
        {
            return "range " + MetadataJson.bound(start) + " " + MetadataJson.bound(end) + " " + Canonical.deletion(deletion);
        }
    }
}
