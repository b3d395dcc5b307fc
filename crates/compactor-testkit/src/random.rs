//! Random numbers from a seed, the same on every machine and release.

/// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Sequence of a seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// Returns any number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `end`, which is not 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.number() % end
    }

    /// Returns an index of a slice of this length, which is not 0.
    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// Returns true once in `n` times on average.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// Returns one of the options.
    pub fn pick<'a, T>(&mut self, options: &'a [T]) -> &'a T {
        &options[self.index(options.len())]
    }

    /// Returns bytes that do not compress.
    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        let mut out = Vec::with_capacity(len + 8);
        while out.len() < len {
            out.extend_from_slice(&self.number().to_le_bytes());
        }
        out.truncate(len);
        out
    }

    /// Returns words and numbers, which LZ4 compresses to about half.
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

    /// Returns the hexadecimal digits of bytes that do not compress.
    pub fn hex(&mut self, bytes: usize) -> String {
        let mut text = String::with_capacity(bytes * 2 + 16);
        while text.len() < bytes * 2 {
            text.push_str(&format!("{:016x}", self.number()));
        }
        text.truncate(bytes * 2);
        text
    }
}
