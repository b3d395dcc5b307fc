package compactor.interop;

import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.Queue;

import org.apache.cassandra.db.Clustering;
import org.apache.cassandra.db.DeletionTime;
import org.apache.cassandra.db.rows.AbstractUnfilteredRowIterator;
import org.apache.cassandra.db.rows.RangeTombstoneBoundMarker;
import org.apache.cassandra.db.rows.RangeTombstoneBoundaryMarker;
import org.apache.cassandra.db.rows.RangeTombstoneMarker;
import org.apache.cassandra.db.rows.Unfiltered;
import org.apache.cassandra.db.rows.UnfilteredRowIterator;

/**
 * A partition with markers that change nothing: before each row a boundary whose two deletions are equal, as releases
 * before 3.0.18 and 3.11.4 left them (CASSANDRA-14894), or a range that the partition's deletion covers.
 */
final class IdleMarkers extends AbstractUnfilteredRowIterator
{
    private final UnfilteredRowIterator wrapped;
    private final Queue<Unfiltered> ahead = new ArrayDeque<>();
    private DeletionTime open = DeletionTime.LIVE;
    private boolean wasMarker;
    private Unfiltered following;

    IdleMarkers(UnfilteredRowIterator wrapped)
    {
        super(wrapped.metadata(), wrapped.partitionKey(), wrapped.partitionLevelDeletion(), wrapped.columns(), wrapped.staticRow(),
              wrapped.isReverseOrder(), wrapped.stats());
        this.wrapped = wrapped;
    }

    @Override
    protected Unfiltered computeNext()
    {
        if (ahead.isEmpty())
        {
            Unfiltered item = following == null ? advance() : following;
            following = advance();
            if (item != null)
                fill(item, following);
        }
        Unfiltered next = ahead.poll();
        return next == null ? endOfData() : next;
    }

    private Unfiltered advance()
    {
        return wrapped.hasNext() ? wrapped.next() : null;
    }

    private void fill(Unfiltered item, Unfiltered following)
    {
        if (item instanceof RangeTombstoneMarker)
        {
            RangeTombstoneMarker marker = (RangeTombstoneMarker) item;
            open = marker.isOpen(false) ? marker.openDeletionTime(false) : DeletionTime.LIVE;
            ahead.add(item);
            wasMarker = true;
            return;
        }
        Clustering<?> at = (Clustering<?>) item.clustering();
        DeletionTime hidden = partitionLevelDeletion();
        // Next to another marker there may be no room for one.
        boolean isPossible = at.size() > 0 && !wasMarker;
        for (ByteBuffer value : at.getBufferArray())
            isPossible &= value != null;
        if (isPossible && !open.isLive())
            ahead.add(RangeTombstoneBoundaryMarker.exclusiveCloseInclusiveOpen(false, at, open, open));
        boolean isHidden = isPossible && open.isLive() && !hidden.isLive() && !(following instanceof RangeTombstoneMarker);
        if (isHidden)
            ahead.add(RangeTombstoneBoundMarker.inclusiveOpen(false, at, hidden));
        ahead.add(item);
        if (isHidden)
            ahead.add(RangeTombstoneBoundMarker.inclusiveClose(false, at, hidden));
        wasMarker = false;
    }

    @Override
    public void close()
    {
        wrapped.close();
    }
}
