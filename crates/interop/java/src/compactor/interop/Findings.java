package compactor.interop;

import java.util.ArrayList;
import java.util.List;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

/** Findings of a verification, each with the name of the check that found it. */
final class Findings
{
    /** Maximum number of findings of one check: the first few suffice. */
    private static final int MOST = 5;

    private final List<String[]> found = new ArrayList<>();

    void add(String check, String message)
    {
        if (found.stream().filter(finding -> finding[0].equals(check)).count() < MOST)
            found.add(new String[]{ check, message });
    }

    /** Adds a finding unless the two are equal. */
    void equal(String check, String what, Object expected, Object actual)
    {
        if (!java.util.Objects.equals(expected, actual))
            add(check, what + ": expected " + expected + ", found " + actual);
    }

    /** Runs a check; an exception is a finding too. */
    void guard(String check, Check body)
    {
        try
        {
            body.run();
        }
        catch (Throwable t)
        {
            add(check, Errors.chain(t));
        }
    }

    boolean isEmpty()
    {
        return found.isEmpty();
    }

    ArrayNode json()
    {
        ArrayNode array = Server.JSON.createArrayNode();
        for (String[] finding : found)
        {
            ObjectNode node = array.addObject();
            node.put("check", finding[0]);
            node.put("message", finding[1]);
        }
        return array;
    }

    interface Check
    {
        void run() throws Exception;
    }
}
