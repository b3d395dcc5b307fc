//! The plain copy: every byte of the inputs' `Data.db`, read and written as a merge does, and nothing
//! done to them.

use compactor_io::{
    Io, IoOptions, ReadaheadOptions, SequentialReader, WriterOptions, sync_directory,
};
use compactor::{EngineError, Observer, Result};

use super::{IoPair, Request};

/// Copies the inputs, one after the other, and returns the modes that were used and what was done
/// otherwise than asked.
///
/// # Errors
/// A failed read or write, or cancellation.
pub(super) fn copy(
    request: &Request,
    observer: &mut dyn Observer,
) -> Result<(Option<IoPair>, Vec<String>)> {
    let io = Io::new(IoOptions::default())?;
    let mut used = None;
    let mut done_bytes = 0;
    for (number, path) in request.inputs.iter().enumerate() {
        let input = io.open(path, request.io.read)?;
        let read = input.mode();
        let options = WriterOptions {
            expected_len: Some(input.len()),
            ..WriterOptions::default()
        };
        let target = request.output.join(number.to_string());
        let mut writer = io.create(&target, request.io.write, options)?;
        let mut reader = SequentialReader::whole(input, ReadaheadOptions::default());
        while let Some(extent) = reader.next()? {
            if observer.is_cancelled() {
                return Err(EngineError::Cancelled.into());
            }
            writer.write_all(&extent)?;
            done_bytes += extent.len() as u64;
            observer.progress(done_bytes, 0, 0);
        }
        let write = writer.finish()?.mode;
        used = Some(IoPair { read, write });
    }
    sync_directory(&request.output)?;
    Ok((used, io.notes()))
}

#[cfg(test)]
mod tests {
    use super::super::work::tests::request;
    use super::super::{IoPair, Work};
    use super::*;
    use compactor::NoObserver;
    use compactor_io::{ReadMode, WriteMode};

    #[test]
    fn every_byte_arrives_in_every_mode() {
        let temp = tempfile::tempdir().unwrap();
        let mut request = request(temp.path(), Work::Copy);
        for (number, len) in [0usize, 1, 5000, 3 << 20].into_iter().enumerate() {
            let path = temp.path().join(format!("input-{number}"));
            let bytes: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
            std::fs::write(&path, bytes).unwrap();
            request.inputs.push(path);
        }
        let pairs = [
            (ReadMode::Auto, WriteMode::Auto),
            (ReadMode::Buffered, WriteMode::Trickle),
            (ReadMode::DontNeed, WriteMode::Buffered),
        ];
        for (read, write) in pairs {
            request.io = IoPair { read, write };
            request.output = temp.path().join(request.io.to_string().replace('/', "-"));
            std::fs::create_dir(&request.output).unwrap();
            let (used, _) = copy(&request, &mut NoObserver).unwrap();
            let used = used.unwrap();
            assert!(used.read != ReadMode::Auto && used.write != WriteMode::Auto);
            for (number, input) in request.inputs.iter().enumerate() {
                let copied = std::fs::read(request.output.join(number.to_string())).unwrap();
                assert!(copied == std::fs::read(input).unwrap(), "{number}");
            }
        }
    }
}
