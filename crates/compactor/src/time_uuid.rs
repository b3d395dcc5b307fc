//! UUIDs of version 1 of a given time.

/// 100 ns since 1582, of which they count.
pub(crate) fn ticks_of(micros: i64) -> i64 {
    const UNIX_EPOCH_TICKS: i64 = 0x01b2_1dd2_1381_4000;
    UNIX_EPOCH_TICKS + micros * 10
}

/// The UUID of this time. `node`: its lower half, which is the clock sequence and the node.
pub(crate) fn time_uuid(ticks: i64, node: i64) -> [u8; 16] {
    let ticks = ticks as u128;
    let (low, middle, high) = (
        ticks & 0xffff_ffff,
        (ticks >> 32) & 0xffff,
        (ticks >> 48) & 0x0fff,
    );
    let lower = u128::from(node as u64);
    ((low << 96) | (middle << 80) | (0x1000 << 64) | (high << 64) | lower).to_be_bytes()
}
