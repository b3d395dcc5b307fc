//! Seeded numbers, the same on every machine and release.

/// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The sequence of `seed`.
    pub fn new(seed: u64) -> Random {
        Random { state: seed }
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Bytes that do not compress.
    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        let mut out = Vec::with_capacity(len + 8);
        while out.len() < len {
            out.extend_from_slice(&self.number().to_le_bytes());
        }
        out.truncate(len);
        out
    }

    /// Words and numbers, which LZ4 brings to about half.
    pub fn text(&mut self, len: usize) -> Vec<u8> {
        const WORDS: [&str; 16] = [
            "compaction",
            "sstable",
            "row",
            "clustering",
            "a",
            "token",
            "page",
            "cache",
            "in",
            "replica",
            "direct",
            "buffered",
            "of",
            "tombstone",
            "merge",
            "node",
        ];
        let mut out = Vec::with_capacity(len + 16);
        while out.len() < len {
            let number = self.number();
            out.extend_from_slice(WORDS[(number % 16) as usize].as_bytes());
            if number & 0x30 == 0 {
                out.extend_from_slice(format!("{:x}", number >> 40).as_bytes());
            }
            out.push(b' ');
        }
        out.truncate(len);
        out
    }
}
