package compactor.interop;

import java.util.ArrayList;
import java.util.List;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

/** Dispatches each request to the class that handles it. */
final class Operations
{
    private Operations()
    {
    }

    static JsonNode run(JsonNode request) throws Exception
    {
        String op = text(request, "op");
        ObjectNode result = Server.JSON.createObjectNode();
        switch (op)
        {
            case "start":
                Node.start();
                result.put("release", org.apache.cassandra.utils.FBUtilities.getReleaseVersionString());
                result.put("version", Node.currentVersion());
                return result;
            case "now":
                PinnedClock.setSeconds(request.get("now_s").longValue());
                return result;
            case "cql":
                Node.execute(strings(request, "statements"));
                return result;
            case "adopt":
                Adopt.run(request);
                return result;
            case "raw":
                Raw.run(Node.table(request), request);
                return result;
            case "flush":
                result.put("data", Node.flush(Node.table(request), text(request, "out"), request.get("generation").intValue()));
                return result;
            case "repair":
                Repair.set(request);
                return result;
            case "schema":
                result.put("cql", Node.schema(Node.table(request)));
                return result;
            case "live":
                return Leftovers.live(Node.table(request));
            case "remove_leftovers":
                Leftovers.remove(Node.table(request));
                return result;
            case "compact":
                return Compact.run(Node.table(request), request);
            case "size_tiered_buckets":
                return Strategy.buckets(request);
            case "size_tiered_next":
                return Strategy.next(Node.table(request), request);
            case "strategy_of_files":
                return Strategy.ofFiles(Node.table(request), request);
            case "strategy_options":
                return Strategy.options(request);
            case "plan_open":
                Planning.open(Node.table(request), request);
                return result;
            case "plan_add":
                Planning.added(request);
                return result;
            case "plan_next":
                return Planning.next(request);
            case "plan_abort":
                Planning.abort(request);
                return result;
            case "plan_complete":
                Planning.complete(request);
                return result;
            case "plan_close":
                Planning.close();
                return result;
            case "dump":
                result.put("lines", Dump.run(Node.table(request), text(request, "data"), text(request, "out")));
                return result;
            case "sstabledump":
                Export.run(Node.table(request), text(request, "data"), text(request, "out"));
                return result;
            case "sstablemetadata":
                MetadataText.run(Node.table(request), text(request, "data"), text(request, "out"));
                return result;
            case "offline_table":
                OfflineTable.create(request);
                return result;
            case "offline_write":
                result.put("data", OfflineWrite.run(Node.table(request), request));
                return result;
            case "offline_drop":
                OfflineTable.drop(request);
                return result;
            case "scrub":
                return Scrub.run(Node.table(request), request);
            case "verify":
                result.set("findings", Verify.run(Node.table(request), text(request, "data")));
                return result;
            case "judge":
                return Judge.run(Node.table(request), text(request, "data"), text(request, "out"));
            case "metadata":
                return MetadataJson.run(Node.table(request), text(request, "data"));
            case "content":
                Content.run(Node.table(request), text(request, "data"), text(request, "out"));
                return result;
            default:
                throw new IllegalArgumentException("unknown operation " + op);
        }
    }

    static String text(JsonNode request, String name)
    {
        JsonNode value = request.get(name);
        if (value == null || !value.isTextual())
            throw new IllegalArgumentException("request lacks the text field " + name);
        return value.textValue();
    }

    static List<String> strings(JsonNode request, String name)
    {
        List<String> values = new ArrayList<>();
        JsonNode array = request.get(name);
        if (array != null)
            array.forEach(item -> values.add(item.textValue()));
        return values;
    }
}
