package compactor.interop;

import com.fasterxml.jackson.databind.JsonNode;

import org.apache.cassandra.db.Clustering;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.DecoratedKey;
import org.apache.cassandra.db.DeletionTime;
import org.apache.cassandra.db.LivenessInfo;
import org.apache.cassandra.db.Mutation;
import org.apache.cassandra.db.marshal.Int32Type;
import org.apache.cassandra.db.partitions.PartitionUpdate;
import org.apache.cassandra.db.rows.BTreeRow;
import org.apache.cassandra.db.rows.Row;
import org.apache.cassandra.schema.TableMetadata;

/**
 * Rows that CQL cannot write but materialized views do: shadowable deletions, and liveness that is expired from the start.
 * The table has an int key and one int clustering column.
 */
final class Raw
{
    private Raw()
    {
    }

    static void run(ColumnFamilyStore cfs, JsonNode request)
    {
        TableMetadata metadata = cfs.metadata();
        DecoratedKey key = metadata.partitioner.decorateKey(Int32Type.instance.decompose(request.get("key").intValue()));
        Clustering<?> clustering = Clustering.make(Int32Type.instance.decompose(request.get("clustering").intValue()));
        long timestamp = request.get("timestamp").longValue();
        long now = PinnedClock.seconds();
        Row.Builder row = BTreeRow.unsortedBuilder();
        row.newRow(clustering);
        switch (Operations.text(request, "what"))
        {
            case "shadowable":
                row.addRowDeletion(Row.Deletion.shadowable(DeletionTime.build(timestamp, now)));
                break;
            case "expired":
                row.addPrimaryKeyLivenessInfo(LivenessInfo.withExpirationTime(timestamp, LivenessInfo.EXPIRED_LIVENESS_TTL, now));
                break;
            default:
                throw new IllegalArgumentException("unknown kind of row " + request.get("what"));
        }
        new Mutation(PartitionUpdate.singleRowUpdate(metadata, key, row.build())).apply();
    }
}
