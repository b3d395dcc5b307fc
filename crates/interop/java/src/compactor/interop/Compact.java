package compactor.interop;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.cassandra.config.Config.DiskAccessMode;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.compaction.ActiveCompactionsTracker;
import org.apache.cassandra.db.compaction.CompactionTask;
import org.apache.cassandra.db.compaction.OperationType;
import org.apache.cassandra.db.lifecycle.LifecycleTransaction;
import org.apache.cassandra.io.sstable.format.SSTableReader;

/** One CompactionTask over all the inputs, by the pipeline that the request names. */
final class Compact
{
    private Compact()
    {
    }

    static ObjectNode run(ColumnFamilyStore cfs, JsonNode request) throws Exception
    {
        Node.empty(cfs);
        PinnedClock.setSeconds(request.get("now_s").longValue());
        Release.pipeline("cursor".equals(Operations.text(request, "pipeline")));
        JsonNode gcBefore = request.get("gc_before_s");
        // CompactionManager.NO_GC: nothing is older than the beginning of time, so nothing is purged.
        long gcBeforeSeconds = gcBefore == null || gcBefore.isNull() ? Long.MIN_VALUE : gcBefore.longValue();

        List<SSTableReader> inputs = Stage.open(cfs, Stage.dataFiles(request, "inputs"));
        List<SSTableReader> others = Stage.open(cfs, Stage.dataFiles(request, "others"));
        List<SSTableReader> all = new ArrayList<>(inputs);
        all.addAll(others);
        cfs.addSSTables(all);
        LifecycleTransaction txn = cfs.getTracker().tryModify(inputs, OperationType.COMPACTION);
        if (txn == null)
            throw new IllegalStateException("the inputs cannot be marked as compacting");
        CompactionTask task = request.hasNonNull("max_sstable_size")
                            ? new ToSize(cfs, txn, gcBeforeSeconds, request.get("max_sstable_size").longValue())
                            : new CompactionTask(cfs, txn, gcBeforeSeconds);
        access(request);
        long start = System.nanoTime();
        task.execute(ActiveCompactionsTracker.NOOP);
        long nanos = System.nanoTime() - start;

        Set<SSTableReader> outputs = new HashSet<>(cfs.getLiveSSTables());
        outputs.removeAll(new HashSet<>(others));
        List<SSTableReader> ordered = new ArrayList<>(outputs);
        ordered.sort(Comparator.comparing(SSTableReader::getFirst));
        ObjectNode result = Server.JSON.createObjectNode();
        ArrayNode files = result.putArray("outputs");
        int generation = 1;
        for (SSTableReader output : ordered)
        {
            // A benchmark has no use for the output.
            if (request.hasNonNull("out"))
                files.add(Stage.copyOut(output, Path.of(Operations.text(request, "out")), generation++).toString());
        }
        // These names decide the order in which Cassandra visits the inputs.
        ArrayNode staged = result.putArray("staged");
        for (SSTableReader input : inputs)
            staged.add(input.descriptor.baseFile().name());
        result.put("nanos", nanos);
        Node.empty(cfs);
        return result;
    }

    /** Page cache or O_DIRECT, for benchmarks; tests leave it at the default. */
    private static void access(JsonNode request)
    {
        if (!request.hasNonNull("access"))
            return;
        Release.access(request.get("access").textValue().equals("direct") ? DiskAccessMode.direct : DiskAccessMode.standard);
    }
}
