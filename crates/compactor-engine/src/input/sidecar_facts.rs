//! Facts that sidecar components state about `Data.db`, to be compared with it when it is read.

use crate::read::key_position_checksum::KeyPositionChecksum;

/// Facts that the sidecar components of an SSTable state about its `Data.db`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SidecarFacts {
    /// Checksum over keys and positions that `Index.db` lists; BTI has no list of keys.
    pub places: Option<KeyPositionChecksum>,
    /// CRC32 stated in `Digest.crc32`, if it exists.
    pub digest: Option<u32>,
}
