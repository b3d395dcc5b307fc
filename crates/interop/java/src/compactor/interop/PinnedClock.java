package compactor.interop;

import java.time.Instant;
import java.util.concurrent.atomic.AtomicLong;

import org.apache.cassandra.utils.Clock;

/**
 * Wall clock that stands still until the test moves it, so that TTLs and gc_grace are exact.
 * Named by {@code -Dcassandra.clock}. The monotonic clock stays real: timeouts and rate limiters depend on it.
 */
public final class PinnedClock implements Clock
{
    private static final AtomicLong NOW_MILLIS = new AtomicLong(System.currentTimeMillis());

    /** Pins the wall clock to the start of the given second since the epoch. */
    static void setSeconds(long seconds)
    {
        NOW_MILLIS.set(Math.multiplyExact(seconds, 1000L));
    }

    static void setMillis(long millis)
    {
        NOW_MILLIS.set(millis);
    }

    static long seconds()
    {
        return NOW_MILLIS.get() / 1000L;
    }

    @Override
    public long nanoTime()
    {
        return System.nanoTime();
    }

    @Override
    public long currentTimeMillis()
    {
        return NOW_MILLIS.get();
    }

    /** Only Cassandra 6 asks for it. */
    public Instant currentTime()
    {
        return Instant.ofEpochMilli(NOW_MILLIS.get());
    }
}
