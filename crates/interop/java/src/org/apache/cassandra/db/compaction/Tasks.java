package org.apache.cassandra.db.compaction;

import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;

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
    public static List<Long> boundaries(AbstractCompactionStrategy strategy, Set<SSTableReader> inputs)
    {
        List<Long> boundaries = new ArrayList<>();
        if (!(strategy instanceof UnifiedCompactionStrategy))
            return boundaries;
        UnifiedCompactionStrategy unified = (UnifiedCompactionStrategy) strategy;
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
