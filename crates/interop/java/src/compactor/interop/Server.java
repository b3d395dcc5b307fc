package compactor.interop;

import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;

/**
 * A Cassandra without ports, driven by JSON lines: one request object per line on stdin, one response object per line
 * on the real stdout. Everything else that writes to stdout (Jamm warns there) is sent to stderr.
 *
 * Request: {@code {"id": 1, "op": "...", ...}}. Response: {@code {"id": 1, "ok": {...}}} or
 * {@code {"id": 1, "error": "...", "trace": "..."}}.
 */
public final class Server
{
    static final ObjectMapper JSON = new ObjectMapper();

    private Server()
    {
    }

    public static void main(String[] args) throws Exception
    {
        PrintStream replies = new PrintStream(new FileOutputStream(FileDescriptor.out), false, "UTF-8");
        System.setOut(System.err);
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        String line;
        while ((line = requests.readLine()) != null)
        {
            JsonNode request = JSON.readTree(line);
            ObjectNode response = JSON.createObjectNode();
            response.set("id", request.get("id"));
            try
            {
                response.set("ok", Operations.run(request));
            }
            catch (Throwable t)
            {
                StringWriter trace = new StringWriter();
                t.printStackTrace(new PrintWriter(trace));
                response.put("error", Errors.chain(t));
                response.put("trace", trace.toString());
            }
            replies.println(JSON.writeValueAsString(response));
            replies.flush();
        }
        // Cassandra leaves non-daemon threads running; a closed stdin means that the test is over.
        Runtime.getRuntime().halt(0);
    }
}
