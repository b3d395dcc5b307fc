package compactor.interop;

/** Exceptions as one line of text: the causes matter more than the outermost wrapper. */
final class Errors
{
    private Errors()
    {
    }

    static String chain(Throwable t)
    {
        StringBuilder text = new StringBuilder();
        for (Throwable at = t; at != null && text.length() < 2000; at = at.getCause() == at ? null : at.getCause())
        {
            if (text.length() > 0)
                text.append(" <- ");
            text.append(at.getClass().getSimpleName()).append(": ").append(at.getMessage());
            if (at.getCause() == null && at.getStackTrace().length > 0)
                text.append(" at ").append(at.getStackTrace()[0]).append(" from ").append(own(at));
        }
        return text.toString();
    }

    /** The innermost frame that is ours. */
    private static Object own(Throwable t)
    {
        for (StackTraceElement frame : t.getStackTrace())
            if (frame.getClassName().startsWith("compactor."))
                return frame;
        return "elsewhere";
    }
}
