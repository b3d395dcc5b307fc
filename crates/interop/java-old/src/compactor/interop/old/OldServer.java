package compactor.interop.old;

import java.io.BufferedReader;
import java.io.File;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.HashSet;
import java.util.Set;

import org.json.simple.JSONArray;
import org.json.simple.JSONObject;
import org.json.simple.JSONValue;

import org.apache.cassandra.config.DatabaseDescriptor;
import org.apache.cassandra.cql3.QueryProcessor;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.Keyspace;
import org.apache.cassandra.db.commitlog.CommitLog;
import org.apache.cassandra.io.sstable.format.SSTableReader;

/**
 * A Cassandra between 3.0 and 4.1 without ports, which runs CQL and flushes. It speaks the protocol of
 * {@code compactor.interop.Server}; one source serves all releases, so what differs between them is called by reflection.
 */
public final class OldServer
{
    private OldServer()
    {
    }

    @SuppressWarnings("unchecked")
    public static void main(String[] args) throws Exception
    {
        PrintStream replies = new PrintStream(new FileOutputStream(FileDescriptor.out), false, "UTF-8");
        System.setOut(System.err);
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        String line;
        while ((line = requests.readLine()) != null)
        {
            JSONObject request = (JSONObject) JSONValue.parse(line);
            JSONObject response = new JSONObject();
            response.put("id", request.get("id"));
            try
            {
                response.put("ok", run(request));
            }
            catch (Throwable t)
            {
                StringWriter trace = new StringWriter();
                t.printStackTrace(new PrintWriter(trace));
                response.put("error", String.valueOf(t));
                response.put("trace", trace.toString());
            }
            replies.println(response.toJSONString());
            replies.flush();
        }
        Runtime.getRuntime().halt(0);
    }

    @SuppressWarnings("unchecked")
    private static JSONObject run(JSONObject request) throws Exception
    {
        JSONObject result = new JSONObject();
        switch ((String) request.get("op"))
        {
            case "start":
                start();
                return result;
            case "cql":
                for (Object statement : (JSONArray) request.get("statements"))
                    QueryProcessor.executeOnceInternal((String) statement);
                return result;
            case "flush":
                result.put("data", flush((String) request.get("keyspace"), (String) request.get("table"),
                                         Paths.get((String) request.get("out")), ((Number) request.get("generation")).intValue()));
                return result;
            default:
                throw new IllegalArgumentException("unknown operation " + request.get("op"));
        }
    }

    private static void start() throws Exception
    {
        // Releases before 3.10 do both when the class is loaded.
        callIfThere(null, DatabaseDescriptor.class, "daemonInitialization");
        DatabaseDescriptor.createAllDirectories();
        callIfThere(CommitLog.instance, CommitLog.class, "start");
        Keyspace.setInitialized();
    }

    private static void callIfThere(Object on, Class<?> type, String name) throws Exception
    {
        try
        {
            type.getMethod(name).invoke(on);
        }
        catch (NoSuchMethodException e)
        {
            // See above.
        }
    }

    /** Flushes the memtable and copies the one SSTable that it becomes into {@code out}. */
    private static String flush(String keyspace, String table, Path out, int generation) throws Exception
    {
        ColumnFamilyStore cfs = Keyspace.open(keyspace).getColumnFamilyStore(table);
        cfs.disableAutoCompaction();
        Set<SSTableReader> before = new HashSet<>();
        for (SSTableReader reader : cfs.getLiveSSTables())
            before.add(reader);
        flush(cfs);
        String data = null;
        for (SSTableReader reader : cfs.getLiveSSTables())
        {
            if (before.contains(reader))
                continue;
            if (data != null)
                throw new IllegalStateException("a flush wrote more than one SSTable");
            data = copy(new File(reader.getFilename()), out, generation);
        }
        if (data == null)
            throw new IllegalStateException("a flush wrote no SSTable");
        return data;
    }

    /** Flushes the table; since 4.1 a flush takes a reason. */
    private static void flush(ColumnFamilyStore cfs) throws Exception
    {
        for (Method method : ColumnFamilyStore.class.getMethods())
        {
            if (!method.getName().equals("forceBlockingFlush"))
                continue;
            Class<?>[] parameters = method.getParameterTypes();
            if (parameters.length == 0)
            {
                method.invoke(cfs);
                return;
            }
            if (parameters.length == 1 && parameters[0].isEnum())
            {
                method.invoke(cfs, parameters[0].getEnumConstants()[0]);
                return;
            }
        }
        throw new NoSuchMethodException("ColumnFamilyStore.forceBlockingFlush");
    }

    private static String copy(File data, Path out, int generation) throws Exception
    {
        String own = data.getName().substring(0, data.getName().length() - "Data.db".length());
        String renamed = own.substring(0, own.indexOf('-')) + "-" + generation + "-big-";
        Files.createDirectories(out);
        for (File file : data.getParentFile().listFiles())
            if (file.getName().startsWith(own))
                Files.copy(file.toPath(), out.resolve(renamed + file.getName().substring(own.length())));
        return out.resolve(renamed + "Data.db").toString();
    }
}
