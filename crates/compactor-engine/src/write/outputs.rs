//! The outputs of one merge, written one after the other.
//!
//! Source: `CompactionAwareWriter.maybeSwitchWriter`, `MaxSSTableSizeWriter`.

use std::sync::Arc;

use compactor_io::Io;
use compactor_sstable::partitioner::Partitioner;

use crate::error::{Error, Result};
use crate::publish::output_id::OutputIds;
use crate::publish::staging::Staging;
use crate::write::sstable_settings::SstableSettings;
use crate::write::sstable_writer::{OutputParts, SstableWriter, StagedSstable, WriteSettings};

/// Settings that all outputs share.
#[derive(Clone, Debug)]
pub struct OutputSettings {
    /// Settings of the first output, except for its number of keys.
    pub sstable: SstableSettings,
    /// Expected number of partitions per output.
    pub keys_per_sstable: u64,
    /// Ids of the following outputs.
    pub ids: OutputIds,
    /// The table's partitioner.
    pub partitioner: Partitioner,
    /// Settings of how the files are written.
    pub write: WriteSettings,
}

impl OutputSettings {
    /// Divides the expected partitions and bytes of a single output among `outputs`.
    pub fn share_among(&mut self, outputs: usize) {
        let outputs = outputs.max(1) as u64;
        self.keys_per_sstable = self.keys_per_sstable.div_ceil(outputs);
        let expected_len = &mut self.write.expected_len;
        *expected_len = expected_len.map(|len| len.div_ceil(outputs));
    }

    fn begin(&self, io: &Io, staging: &Arc<Staging>) -> Result<(SstableWriter, OutputParts)> {
        let (staging, sstable) = (Arc::clone(staging), self.sstable.clone());
        SstableWriter::begin(io, staging, sstable, self.partitioner, &self.write)
    }
}

/// Outputs in one staging directory: the complete ones, and the one being written.
#[derive(Debug)]
pub struct Outputs {
    io: Io,
    staging: Arc<Staging>,
    settings: OutputSettings,
    complete: Vec<StagedSstable>,
    current: SstableWriter,
    /// Parts of the output being written.
    pub parts: OutputParts,
}

impl Outputs {
    /// Begins the first output.
    ///
    /// # Errors
    /// Something unsupported, or a failed file operation.
    pub fn begin(io: Io, staging: Staging, mut settings: OutputSettings) -> Result<Outputs> {
        let staging = Arc::new(staging);
        settings.sstable.expected_keys = settings.keys_per_sstable;
        let (current, parts) = settings.begin(&io, &staging)?;
        Ok(Outputs {
            io,
            staging,
            settings,
            complete: Vec::new(),
            current,
            parts,
        })
    }

    /// The output being written.
    pub fn current(&self) -> &SstableWriter {
        &self.current
    }

    /// Completes the current output and begins the next. `expected_keys` is its expected number of partitions; `None`
    /// for that of the previous output.
    ///
    /// # Errors
    /// A failed write or sync, or no id is left.
    pub fn next(mut self, expected_keys: Option<u64>) -> Result<Outputs> {
        let staged = self.current.stage(self.parts)?;
        let staged = staged.ok_or_else(|| Error::internal("an output of nothing"))?;
        let sstable = &mut self.settings.sstable;
        // The output has more keys than the inputs' statistics suggested; the next may have as many.
        let like_before = || sstable.expected_keys.max(staged.written.partitions);
        sstable.expected_keys = expected_keys.unwrap_or_else(like_before);
        sstable.descriptor.id = self.settings.ids.take()?;
        let (current, parts) = self.settings.begin(&self.io, &self.staging)?;
        self.complete.push(staged);
        Ok(Outputs {
            current,
            parts,
            ..self
        })
    }

    /// Completes the last output. An output without partitions is omitted.
    pub fn end(mut self) -> Result<Vec<StagedSstable>> {
        self.complete.extend(self.current.stage(self.parts)?);
        Ok(self.complete)
    }
}
