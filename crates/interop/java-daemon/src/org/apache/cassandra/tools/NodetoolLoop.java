package org.apache.cassandra.tools;

import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;


/**
 * nodetool, warm: a line of arguments separated by tabs is answered by a line with the exit code and, as JSON string, what
 * the command printed. In this package since the class that connects is not public. It talks to the node over JMX, as the command does.
 */
public final class NodetoolLoop
{
    private NodetoolLoop() {}

    public static void main(String[] arguments) throws Exception
    {
        PrintStream replies = System.out;
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = requests.readLine(); line != null; line = requests.readLine())
        {
            ByteArrayOutputStream printed = new ByteArrayOutputStream();
            PrintStream stream = new PrintStream(printed, true, StandardCharsets.UTF_8);
            // Some commands ignore the stream that they are given, and print to stdout.
            System.setOut(stream);
            System.setErr(stream);
            int code = new NodeTool(new NodeProbeFactory(), new Output(stream, stream)).execute(line.split("\t"));
            stream.flush();
            replies.println(code + " " + quoted(printed.toString(StandardCharsets.UTF_8)));
            replies.flush();
        }
    }

    private static String quoted(String text)
    {
        StringBuilder json = new StringBuilder("\"");
        for (char c : text.toCharArray())
        {
            if (c == '"' || c == '\\')
                json.append('\\').append(c);
            else if (c < ' ' || c > '~')
                json.append(String.format("\\u%04x", (int) c));
            else
                json.append(c);
        }
        return json.append('"').toString();
    }
}
