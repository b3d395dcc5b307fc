package org.apache.cassandra.db.compaction;

import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Set;
import java.util.SortedSet;
import java.util.TreeSet;

import org.apache.cassandra.dht.Murmur3Partitioner;
import org.apache.cassandra.dht.Range;
import org.apache.cassandra.dht.Token;
import org.apache.cassandra.io.sstable.format.SSTableReader;

/** Fields of compaction tasks that only their package can read. */
public final class Tasks
{
    private Tasks()
    {
    }

    public static Set<SSTableReader> inputs(AbstractCompactionTask task)
    {
        return task.transaction.originals();
    }

    /** Unmarks the inputs; nothing was written. */
    public static void end(AbstractCompactionTask task)
    {
        task.transaction.close();
    }

    public static boolean isForTombstones(AbstractCompactionTask task)
    {
        return task.compactionType == OperationType.TOMBSTONE_COMPACTION;
    }

    public static boolean isLevelOnly(AbstractCompactionTask task)
    {
        return task instanceof SingleSSTableLCSTask;
    }

    public static int level(AbstractCompactionTask task) throws ReflectiveOperationException
    {
        return ((Number) of(task, "level", 0)).intValue();
    }

    public static long maxSSTableBytes(AbstractCompactionTask task) throws ReflectiveOperationException
    {
        return ((Number) of(task, "maxSSTableBytes", Long.MAX_VALUE)).longValue();
    }

    /** Last tokens of the output shards but the last; none for strategies without shards. */
    @SuppressWarnings("unchecked")
    public static SortedSet<Long> boundaries(AbstractCompactionStrategy strategy, Collection<AbstractCompactionTask> tasks)
    throws ReflectiveOperationException
    {
        SortedSet<Long> boundaries = new TreeSet<>();
        if (!(strategy instanceof UnifiedCompactionStrategy))
            return boundaries;
        UnifiedCompactionStrategy unified = (UnifiedCompactionStrategy) strategy;
        boundaries.addAll(boundaries(unified, inputs(tasks.iterator().next())));
        for (AbstractCompactionTask task : tasks)
        {
            Range<Token> range = (Range<Token>) of(task, "operationRange", null);
            if (range == null)
                continue;
            for (Long end : boundaries(unified, (Set<SSTableReader>) of(task, "actuallyCompact", null)))
                if (range.contains(new Murmur3Partitioner.LongToken(end)))
                    boundaries.add(end);
        }
        return boundaries;
    }

    /** The same of one task, whose writer splits all that it is given. */
    private static List<Long> boundaries(UnifiedCompactionStrategy unified, Set<SSTableReader> inputs)
    {
        List<Long> boundaries = new ArrayList<>();
        ShardManager shards = unified.getShardManager();
        double density = shards.calculateCombinedDensity(inputs) * shards.shardSetCoverage();
        ShardTracker tracker = shards.boundaries(unified.getController().getNumShards(density));
        for (Token end = tracker.shardEnd(); end != null; end = tracker.shardEnd())
        {
            boundaries.add((Long) end.getTokenValue());
            tracker.advanceTo(end.nextValidToken());
        }
        return boundaries;
    }

    private static Object of(AbstractCompactionTask task, String name, Object absent) throws ReflectiveOperationException
    {
        try
        {
            Field field = task.getClass().getDeclaredField(name);
            field.setAccessible(true);
            return field.get(task);
        }
        catch (NoSuchFieldException e)
        {
            return absent;
        }
    }
}
