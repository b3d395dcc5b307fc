package compactor.interop;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.compaction.AbstractCompactionStrategy;
import org.apache.cassandra.db.compaction.AbstractCompactionTask;
import org.apache.cassandra.db.compaction.LeveledCompactionStrategy;
import org.apache.cassandra.db.compaction.SizeTieredCompactionStrategy;
import org.apache.cassandra.db.compaction.Tasks;
import org.apache.cassandra.exceptions.ConfigurationException;
import org.apache.cassandra.io.sstable.format.SSTableReader;
import org.apache.cassandra.schema.CompactionParams;
import org.apache.cassandra.utils.Pair;

/** Compactions that strategies would start. */
final class Strategy
{
    private Strategy()
    {
    }

    /** Buckets of each list of sizes, as indices into the list. */
    static ArrayNode buckets(JsonNode request)
    {
        ArrayNode results = Server.JSON.createArrayNode();
        for (JsonNode list : request.get("lists"))
        {
            List<Pair<Integer, Long>> files = new ArrayList<>();
            for (JsonNode size : list.get("sizes"))
                files.add(Pair.create(files.size(), size.longValue()));
            ArrayNode buckets = results.addArray();
            for (List<Integer> bucket : SizeTieredCompactionStrategy.getBuckets(files,
                                                                               list.get("high").doubleValue(),
                                                                               list.get("low").doubleValue(),
                                                                               list.get("min").longValue()))
                bucket.forEach(buckets.addArray()::add);
        }
        return results;
    }

    /** The SSTables that it compacts next, as indices into the list of Data.db files. */
    static ObjectNode next(ColumnFamilyStore cfs, JsonNode request) throws Exception
    {
        Node.empty(cfs);
        List<SSTableReader> readers = Stage.open(cfs, Stage.dataFiles(request, "inputs"));
        Map<SSTableReader, Integer> places = new IdentityHashMap<>();
        for (SSTableReader reader : readers)
            places.put(reader, places.size());
        cfs.addSSTables(readers);
        ObjectNode result = Server.JSON.createObjectNode();
        List<List<SSTableReader>> buckets =
            SizeTieredCompactionStrategy.getBuckets(SizeTieredCompactionStrategy.createSSTableAndLengthPairs(readers),
                                                    request.get("high").doubleValue(),
                                                    request.get("low").doubleValue(),
                                                    request.get("min").longValue());
        ArrayNode next = result.putArray("next");
        for (SSTableReader reader : SizeTieredCompactionStrategy.mostInterestingBucket(buckets,
                                                                                       request.get("min_threshold").intValue(),
                                                                                       request.get("max_threshold").intValue()))
            next.add(places.get(reader));
        ArrayNode sizes = result.putArray("sizes");
        for (SSTableReader reader : readers)
            sizes.addObject().put("data", reader.onDiskLength()).put("all", reader.bytesOnDisk());
        Node.empty(cfs);
        return result;
    }

    /** Selection of a strategy that starts with these SSTables, as indices into the list, and its SSTables by level. */
    static ObjectNode ofFiles(ColumnFamilyStore cfs, JsonNode request) throws Exception
    {
        Node.empty(cfs);
        PinnedClock.setSeconds(request.get("now_s").longValue());
        List<SSTableReader> readers = Stage.open(cfs, Stage.dataFiles(request, "inputs"));
        cfs.addSSTables(readers);
        AbstractCompactionStrategy strategy = Planning.strategy(cfs, request);
        strategy.addSSTables(readers);
        strategy.startup();
        ObjectNode result = Server.JSON.createObjectNode();
        ArrayNode selected = result.putArray("selected");
        for (AbstractCompactionTask task : Release.nextTasks(strategy, request.get("gc_before_s").longValue()))
        {
            Tasks.inputs(task).forEach(input -> selected.add(readers.indexOf(input)));
            Tasks.end(task);
        }
        ArrayNode levels = result.putArray("levels");
        if (strategy instanceof LeveledCompactionStrategy)
            for (int sstables : ((LeveledCompactionStrategy) strategy).getAllLevelSize())
                levels.add(sstables);
        Node.empty(cfs);
        return result;
    }

    /** Error of each set of options of a strategy; null if it is valid. */
    static ArrayNode options(JsonNode request)
    {
        ArrayNode results = Server.JSON.createArrayNode();
        Class<? extends AbstractCompactionStrategy> type = CompactionParams.classFromName(Operations.text(request, "class"));
        for (JsonNode set : request.get("sets"))
        {
            Map<String, String> options = new HashMap<>();
            set.fields().forEachRemaining(field -> options.put(field.getKey(), field.getValue().textValue()));
            try
            {
                CompactionParams.create(type, options).validate();
                results.addNull();
            }
            catch (ConfigurationException e)
            {
                results.add(e.getMessage());
            }
            catch (NumberFormatException e)
            {
                // Cassandra does not handle this exception, so it has no message.
                results.add("");
            }
        }
        return results;
    }
}
