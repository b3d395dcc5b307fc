//! Settings of a merge's output, decided from the metadata of its inputs.

use std::path::PathBuf;

use compactor_sstable::Version;
use compactor_sstable::data::cell::NO_TTL;
use compactor_sstable::descriptor::Descriptor;
use compactor_sstable::statistics::{
    CollectorSettings, EncodingStats, SerializationHeader, StatsMetadata,
};

use crate::error::{Error, Result};
use crate::input::header_union::{check_schema, types_of_schema, union};
use crate::input::key_estimate::estimate_keys;
use crate::input::sstable::{InputSstable, check_writable};
use crate::job::options::{MergeOptions, OutputCompression};
use crate::publish::output_id::{OutputIds, next_id};
use crate::write::format_index::default_column_index_size;
use crate::write::sstable_settings::SstableSettings;

/// Returns the header over all inputs, newest first.
pub(crate) fn union_of(inputs: &[InputSstable]) -> Result<SerializationHeader> {
    let sources: Vec<_> = inputs.iter().map(InputSstable::header_source).collect();
    let stats = inputs.iter().map(|i| &i.statistics.stats);
    union(&sources, EncodingStats::merge(stats))
}

/// Decides the settings of the output of these inputs, newest first.
///
/// # Errors
/// Inputs that are not of one table, a version that cannot be written, or no id left.
pub fn decide_settings(
    options: &MergeOptions,
    inputs: &[InputSstable],
    collector: CollectorSettings,
) -> Result<SstableSettings> {
    let header = output_header(options, inputs)?;
    let newest = &inputs[0];
    let version = output_version(options, inputs)?;
    let compression = match &options.compression {
        OutputCompression::None => None,
        OutputCompression::Params(params) => Some(params.clone()),
        OutputCompression::AsNewestInput => {
            newest.compression_info().map(|i| i.params.for_output())
        }
        OutputCompression::AsNewestInputInChunks(chunk_len) => {
            let info = newest.compression_info().ok_or_else(|| {
                Error::InvalidInput(format!(
                    "{} is not compressed, and so would be the output: a chunk length needs a compressor",
                    newest.data_path().display()
                ))
            })?;
            Some(info.params.for_output().with_chunk_len(*chunk_len))
        }
    };
    let compression = compression.map(|params| params.for_version(version));
    Ok(SstableSettings {
        descriptor: Descriptor::new(
            &options.output_directory,
            version,
            output_ids(inputs, options)?.take()?,
        ),
        header,
        compression,
        bloom_filter_fp_chance: options
            .bloom_filter_fp_chance
            .unwrap_or(newest.statistics.validation.bloom_filter_fp_chance),
        expected_keys: estimate_keys(inputs),
        min_index_interval: options.min_index_interval,
        column_index_size: options
            .column_index_size
            .unwrap_or_else(|| default_column_index_size(version.format())),
        collector,
    })
}

/// Returns the columns and types of the output of these inputs, newest first.
pub(crate) fn output_header(
    options: &MergeOptions,
    inputs: &[InputSstable],
) -> Result<SerializationHeader> {
    let mut header = union_of(inputs)?;
    if options.strip_ttl {
        header.encoding_stats.min_ttl = NO_TTL;
    }
    if let Some(table) = &options.table {
        for input in inputs {
            check_schema(table, &input.header_source())?;
        }
        types_of_schema(table, &mut header);
    }
    Ok(header)
}

/// Returns the requested version; otherwise that of the newest release that wrote any input, in the requested
/// format or that of the newest input.
pub(crate) fn output_version(options: &MergeOptions, inputs: &[InputSstable]) -> Result<Version> {
    let newest = inputs[0].descriptor.version;
    let version = match (options.version, options.format) {
        (Some(version), Some(format)) if version.format() != format => {
            return Err(Error::InvalidInput(format!(
                "SSTable version {version} is one of format {}, not {}; choose one of them",
                version.format().name(),
                format.name()
            )));
        }
        (Some(version), _) => version,
        (None, format) => {
            let format = format.unwrap_or(newest.format());
            let versions = inputs
                .iter()
                .map(|i| i.descriptor.version.written_as(format));
            versions.max().unwrap_or(newest.written_as(format))
        }
    };
    check_writable(version)?;
    Ok(version)
}

/// Returns the metadata that the output inherits from all inputs, including those dropped without being read.
pub(crate) fn inherited_settings(
    options: &MergeOptions,
    inputs: &[InputSstable],
) -> Result<CollectorSettings> {
    let stats: Vec<&StatsMetadata> = inputs.iter().map(|i| &i.statistics.stats).collect();
    let mut inherited = CollectorSettings::merge(&stats)?;
    // A single input keeps its level; several come from different levels.
    inherited.level = options.level.unwrap_or(match stats[..] {
        [only] if !options.split.is_divided() => only.level,
        _ => 0,
    });
    Ok(inherited)
}

/// Returns the ids of the outputs: the given ones, or those that are free.
pub(crate) fn output_ids(inputs: &[InputSstable], options: &MergeOptions) -> Result<OutputIds> {
    if let Some(ids) = &options.ids {
        return Ok(ids.clone());
    }
    let paths: Vec<PathBuf> = inputs.iter().map(InputSstable::data_path).collect();
    next_id(&options.output_directory, &paths, options.scope.named()).map(OutputIds::starting_at)
}
