package compactor.interop;

import java.nio.file.Path;

import com.fasterxml.jackson.databind.node.ArrayNode;

import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.io.compress.CompressionMetadata;
import org.apache.cassandra.io.compress.NoopCompressor;
import org.apache.cassandra.io.sstable.Descriptor;
import org.apache.cassandra.io.sstable.IVerifier;
import org.apache.cassandra.io.sstable.format.SSTableReader;

/**
 * All checks of one SSTable by Cassandra's means: the extended verifier, and checks of what it leaves out: components,
 * filter, summary and the index of either format rebuilt, reads of every partition in both directions and in slices,
 * statistics recomputed from the content.
 */
final class Verify
{
    private Verify()
    {
    }

    static ArrayNode run(ColumnFamilyStore cfs, String data) throws Exception
    {
        Findings findings = new Findings();
        Descriptor staged = Stage.stageIn(cfs, Path.of(data));
        try
        {
            // Before the SSTable is opened: opening repairs a damaged summary or filter in place.
            findings.guard("components", () -> ComponentCheck.run(cfs, staged, findings));
            boolean isBti = staged.getFormat().name().equals("bti");
            if (!isBti)
                findings.guard("summary", () -> SummaryCheck.load(cfs, staged));
            findings.guard("statistics", () -> StatisticsCheck.load(staged));
            // Cassandra may loop or run out of memory on what these found.
            if (!findings.isEmpty())
                return findings.json();
            byte[] summary = Bytes.read(staged, "Summary.db");
            byte[] filter = Bytes.read(staged, "Filter.db");
            findings.guard("open", () -> {
                SSTableReader reader = Stage.open(cfs, staged);
                try
                {
                    findings.guard("verifier", () -> extended(cfs, reader));
                    if (!isBti)
                        findings.guard("summary", () -> SummaryCheck.compare(reader, summary, findings));
                    findings.guard("filter", () -> FilterCheck.compare(reader, filter, findings));
                    findings.guard("index", () -> {
                        if (isBti)
                            TrieCheck.run(reader, findings);
                        else
                            IndexCheck.run(reader, findings);
                    });
                    findings.guard("statistics", () -> StatisticsCheck.compare(reader, findings));
                    findings.guard("reads", () -> ReadCheck.run(reader, findings));
                }
                finally
                {
                    reader.selfRef().release();
                }
            });
        }
        finally
        {
            Stage.remove(staged);
        }
        return findings.json();
    }

    /**
     * Runs the verifier of {@code sstableverify -e}. It seeks to the end of the content, and where a chunk ends there,
     * into an empty one, which NoopCompressor writes as no bytes: Cassandra's own files fail the assertion of
     * CompressionMetadata.Chunk.
     */
    static void extended(ColumnFamilyStore cfs, SSTableReader reader)
    {
        IVerifier.Options options = IVerifier.options().extendedVerification(true).invokeDiskFailurePolicy(false).build();
        try (IVerifier verifier = reader.getVerifier(cfs, Release.noOutput(), true, options))
        {
            verifier.verify();
        }
        catch (RuntimeException e)
        {
            if (!endsInChunkOfNoBytes(reader) || !isAssertionOfChunk(e))
                throw e;
        }
    }

    private static boolean endsInChunkOfNoBytes(SSTableReader reader)
    {
        if (!reader.compression)
            return false;
        CompressionMetadata metadata = reader.getCompressionMetadata();
        return metadata.compressor() instanceof NoopCompressor && metadata.dataLength % metadata.chunkLength() == 0;
    }

    private static boolean isAssertionOfChunk(Throwable e)
    {
        while (e.getCause() != null)
            e = e.getCause();
        return e instanceof AssertionError && e.getStackTrace()[0].getClassName().equals(CompressionMetadata.Chunk.class.getName());
    }
}
