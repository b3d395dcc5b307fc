//! Sequential reading of a whole `Data.db`.

use std::sync::Arc;

use compactor_io::InputFile;

use crate::read::decode::DecodedBlocks;
use crate::read::encoding::Encoding;
use crate::read::reading::{DecodeOptions, Reading};
use crate::read::window::HEADROOM;
use crate::read::workers::Workers;

/// Starts reading a whole `Data.db` ahead.
pub(crate) fn read_ahead(
    file: InputFile,
    encoding: Arc<Encoding>,
    workers: &Workers,
) -> DecodedBlocks {
    let reading = Reading {
        decode: DecodeOptions {
            block_len: 256 << 10,
            depth: 4,
            decoded: 2,
            headroom: HEADROOM,
        },
        queue: workers.queue(),
        cancelled: Arc::default(),
        limiter: None,
    };
    DecodedBlocks::start(file, encoding, reading)
}
