package compactor.interop;

import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.cassandra.db.ClusteringPrefix;
import org.apache.cassandra.db.DecoratedKey;
import org.apache.cassandra.db.DeletionTime;
import org.apache.cassandra.db.LivenessInfo;
import org.apache.cassandra.db.rows.Cell;
import org.apache.cassandra.db.rows.ColumnData;
import org.apache.cassandra.db.rows.ComplexColumnData;
import org.apache.cassandra.db.rows.RangeTombstoneBoundMarker;
import org.apache.cassandra.db.rows.RangeTombstoneBoundaryMarker;
import org.apache.cassandra.db.rows.Row;
import org.apache.cassandra.db.rows.Unfiltered;
import org.apache.cassandra.utils.ByteBufferUtil;

/**
 * Strict JSON of what a reader returns: raw values in hex, every timestamp, ttl and local deletion time, nothing
 * normalised, so that equal text means equal content. Values longer than {@link #LONGEST} bytes are replaced by their
 * SHA-256.
 */
final class Canonical
{
    private static final int LONGEST = 1024;

    private Canonical()
    {
    }

    static ObjectNode partition(DecoratedKey key, DeletionTime deletion)
    {
        ObjectNode line = Server.JSON.createObjectNode();
        line.put("kind", "partition");
        line.put("key", value(key.getKey()));
        line.put("token", key.getToken().toString());
        if (!deletion.isLive())
            line.set("deletion", deletion(deletion));
        return line;
    }

    static ObjectNode unfiltered(Unfiltered unfiltered)
    {
        return unfiltered.isRow() ? row((Row) unfiltered) : marker(unfiltered);
    }

    static ObjectNode row(Row row)
    {
        ObjectNode line = Server.JSON.createObjectNode();
        line.put("kind", row.isStatic() ? "static" : "row");
        if (!row.isStatic())
            line.set("clustering", values(row.clustering()));
        LivenessInfo liveness = row.primaryKeyLivenessInfo();
        if (!liveness.isEmpty())
        {
            ObjectNode node = line.putObject("liveness");
            node.put("ts", liveness.timestamp());
            if (liveness.ttl() != LivenessInfo.NO_TTL)
            {
                node.put("ttl", liveness.ttl());
                node.put("ldt", liveness.localExpirationTime());
            }
        }
        if (!row.deletion().isLive())
        {
            ObjectNode node = deletion(row.deletion().time());
            if (row.deletion().isShadowable())
                node.put("shadowable", true);
            line.set("deletion", node);
        }
        ArrayNode columns = line.putArray("columns");
        for (ColumnData data : row)
            columns.add(column(data));
        return line;
    }

    private static ObjectNode column(ColumnData data)
    {
        ObjectNode node = Server.JSON.createObjectNode();
        node.put("name", data.column().name.toString());
        if (data.column().isSimple())
        {
            cell(node, (Cell<?>) data);
            return node;
        }
        ComplexColumnData complex = (ComplexColumnData) data;
        if (!complex.complexDeletion().isLive())
            node.set("deletion", deletion(complex.complexDeletion()));
        ArrayNode cells = node.putArray("cells");
        for (Cell<?> cell : complex)
        {
            ObjectNode item = cells.addObject();
            item.put("path", ByteBufferUtil.bytesToHex(cell.path().get(0)));
            cell(item, cell);
        }
        return node;
    }

    private static void cell(ObjectNode node, Cell<?> cell)
    {
        node.put("ts", cell.timestamp());
        if (cell.ttl() != Cell.NO_TTL)
            node.put("ttl", cell.ttl());
        if (cell.localDeletionTime() != Cell.NO_DELETION_TIME)
            node.put("ldt", cell.localDeletionTime());
        node.put("value", value(cell.buffer()));
    }

    private static ObjectNode marker(Unfiltered unfiltered)
    {
        ObjectNode line = Server.JSON.createObjectNode();
        line.put("kind", "marker");
        line.put("bound", unfiltered.clustering().kind().toString());
        line.set("clustering", values(unfiltered.clustering()));
        if (unfiltered instanceof RangeTombstoneBoundaryMarker)
        {
            RangeTombstoneBoundaryMarker boundary = (RangeTombstoneBoundaryMarker) unfiltered;
            line.set("close", deletion(boundary.endDeletionTime()));
            line.set("open", deletion(boundary.startDeletionTime()));
        }
        else
        {
            RangeTombstoneBoundMarker bound = (RangeTombstoneBoundMarker) unfiltered;
            line.set(bound.isOpen(false) ? "open" : "close", deletion(bound.deletionTime()));
        }
        return line;
    }

    static ObjectNode deletion(DeletionTime deletion)
    {
        ObjectNode node = Server.JSON.createObjectNode();
        node.put("mfda", deletion.markedForDeleteAt());
        node.put("ldt", deletion.localDeletionTime());
        return node;
    }

    /** Clustering values in schema order: null (absent value) and "" (empty value) are different things. */
    static ArrayNode values(ClusteringPrefix<?> prefix)
    {
        ArrayNode values = Server.JSON.createArrayNode();
        for (int i = 0; i < prefix.size(); i++)
        {
            ByteBuffer bytes = prefix.bufferAt(i);
            if (bytes == null)
                values.addNull();
            else
                values.add(value(bytes));
        }
        return values;
    }

    static String value(ByteBuffer bytes)
    {
        if (bytes.remaining() <= LONGEST)
            return ByteBufferUtil.bytesToHex(bytes);
        try
        {
            MessageDigest digest = MessageDigest.getInstance("SHA-256");
            digest.update(bytes.duplicate());
            return "sha256:" + ByteBufferUtil.bytesToHex(ByteBuffer.wrap(digest.digest())) + ":" + bytes.remaining();
        }
        catch (NoSuchAlgorithmException e)
        {
            throw new IllegalStateException(e);
        }
    }
}
