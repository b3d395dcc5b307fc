package compactor.interop;

import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.compaction.AbstractCompactionStrategy;
import org.apache.cassandra.db.compaction.AbstractCompactionTask;
import org.apache.cassandra.db.compaction.Tasks;
import org.apache.cassandra.io.sstable.format.SSTableReader;
import org.apache.cassandra.schema.CompactionParams;

/** A strategy of Cassandra's that selects among SSTables without files, task after task. */
final class Planning
{
    private static Planning open;

    private final ColumnFamilyStore cfs;
    private final AbstractCompactionStrategy strategy;
    private final Map<Integer, PlannedSSTable> live = new HashMap<>();
    private final Map<Integer, Collection<AbstractCompactionTask>> running = new HashMap<>();
    private int tasks;

    private Planning(ColumnFamilyStore cfs, AbstractCompactionStrategy strategy)
    {
        this.cfs = cfs;
        this.strategy = strategy;
    }

    /** Starts a strategy with these SSTables. */
    static void open(ColumnFamilyStore cfs, JsonNode request) throws Exception
    {
        close();
        PinnedClock.setMillis(request.get("now_ms").longValue());
        open = new Planning(cfs, strategy(cfs, request));
        open.add(request.get("sstables"));
        open.strategy.startup();
    }

    /** The strategy that the request names, with its options. */
    static AbstractCompactionStrategy strategy(ColumnFamilyStore cfs, JsonNode request) throws Exception
    {
        Map<String, String> options = new HashMap<>();
        request.get("options").fields().forEachRemaining(field -> options.put(field.getKey(), field.getValue().textValue()));
        Class<? extends AbstractCompactionStrategy> type = CompactionParams.classFromName(Operations.text(request, "class"));
        CompactionParams params = CompactionParams.create(type, options);
        params.validate();
        cfs.setCompactionThresholds(params.minCompactionThreshold(), params.maxCompactionThreshold());
        return type.getConstructor(ColumnFamilyStore.class, Map.class).newInstance(cfs, options);
    }

    /** Forgets the strategy and its SSTables. */
    static void close()
    {
        if (open == null)
            return;
        open.running.values().forEach(tasks -> tasks.forEach(Tasks::end));
        open.cfs.getTracker().removeUnsafe(new HashSet<>(open.live.values()));
        open.live.values().forEach(sstable -> sstable.selfRef().release());
        open = null;
    }

    /** SSTables that a flush wrote. */
    static void added(JsonNode request)
    {
        open.add(request.get("sstables"));
    }

    private void add(JsonNode sstables)
    {
        List<SSTableReader> added = track(sstables);
        strategy.addSSTables(added);
    }

    private List<SSTableReader> track(JsonNode sstables)
    {
        List<SSTableReader> added = new ArrayList<>();
        for (JsonNode planned : sstables)
        {
            PlannedSSTable sstable = PlannedSSTable.of(cfs, planned);
            live.put(sstable.id(), sstable);
            added.add(sstable);
        }
        if (!added.isEmpty())
            cfs.getTracker().addInitialSSTablesWithoutUpdatingSize(added);
        return added;
    }

    /** The next task, which runs from then on; null if there is none. */
    static ObjectNode next(JsonNode request) throws Exception
    {
        PinnedClock.setMillis(request.get("now_ms").longValue());
        ObjectNode result = Server.JSON.createObjectNode();
        Collection<AbstractCompactionTask> tasks = Release.nextTasks(open.strategy, request.get("gc_before_s").longValue());
        result.put("remaining", open.strategy.getEstimatedRemainingTasks());
        if (tasks.isEmpty())
            return result.putNull("task");
        result.set("task", open.begin(tasks));
        return result;
    }

    /** Several tasks are the output shards of one compaction. */
    private ObjectNode begin(Collection<AbstractCompactionTask> shards) throws Exception
    {
        AbstractCompactionTask task = shards.iterator().next();
        running.put(++tasks, shards);
        ObjectNode result = Server.JSON.createObjectNode();
        ArrayNode inputs = result.put("number", tasks).putArray("inputs");
        for (SSTableReader input : Tasks.inputs(task))
            inputs.add(((PlannedSSTable) input).id());
        ArrayNode boundaries = result.putArray("boundaries");
        Tasks.boundaries(strategy, shards).forEach(boundaries::add);
        return result.put("level", Tasks.level(task))
                     .put("max_sstable_bytes", Tasks.maxSSTableBytes(task))
                     .put("is_level_only", Tasks.isLevelOnly(task))
                     .put("is_for_tombstones", Tasks.isForTombstones(task));
    }

    /** Ends a task that failed. */
    static void abort(JsonNode request)
    {
        open.running.remove(request.get("number").intValue()).forEach(Tasks::end);
    }

    /** Ends a task that succeeded: adds its outputs and removes its inputs. */
    static void complete(JsonNode request)
    {
        Collection<AbstractCompactionTask> shards = open.running.remove(request.get("number").intValue());
        Set<SSTableReader> inputs = new HashSet<>(Tasks.inputs(shards.iterator().next()));
        shards.forEach(Tasks::end);
        open.cfs.getTracker().removeUnsafe(inputs);
        for (SSTableReader input : inputs)
            open.live.remove(((PlannedSSTable) input).id());
        List<SSTableReader> outputs = open.track(request.get("outputs"));
        open.strategy.replaceSSTables(inputs, outputs);
        inputs.forEach(input -> input.selfRef().release());
    }
}
