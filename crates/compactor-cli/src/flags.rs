//! Option values: sizes such as `16KiB`, and values common to several commands.

use std::fmt;
use std::str::FromStr;

use compactor::Error;
use compactor_io::BackendKind;

/// A number of bytes, written with a binary or a decimal unit: `64KiB`, `64KB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteSize(pub u64);

impl FromStr for ByteSize {
    type Err = String;

    fn from_str(text: &str) -> Result<ByteSize, String> {
        let text = text.trim();
        let bad = || format!("{text:?} is not a size; write bytes, or 64KiB, 512MiB, 1.5GiB, 50MB");
        let unit = text
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(text.len());
        let (number, unit) = text.split_at(unit);
        let factor: u64 = match unit.trim().to_ascii_lowercase().as_str() {
            "" | "b" => 1,
            "kib" | "k" => 1 << 10,
            "mib" | "m" => 1 << 20,
            "gib" | "g" => 1 << 30,
            "tib" | "t" => 1 << 40,
            "kb" => 1_000,
            "mb" => 1_000_000,
            "gb" => 1_000_000_000,
            "tb" => 1_000_000_000_000,
            _ => return Err(bad()),
        };
        let (whole, decimals) = number.split_once('.').unwrap_or((number, "0"));
        // Of a byte there are no parts.
        if factor == 1 && number.contains('.') {
            return Err(bad());
        }
        let whole: u64 = whole.parse().map_err(|_| bad())?;
        let part: u64 = decimals.parse().map_err(|_| bad())?;
        let places = u32::try_from(decimals.len()).map_err(|_| bad())?;
        let places = 10u128.checked_pow(places).ok_or_else(bad)?;
        let part = u128::from(part) * u128::from(factor) / places;
        let bytes = u128::from(whole) * u128::from(factor) + part;
        u64::try_from(bytes)
            .map(ByteSize)
            .map_err(|_| format!("{text:?} is too large"))
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [
            ("TiB", 1u64 << 40),
            ("GiB", 1 << 30),
            ("MiB", 1 << 20),
            ("KiB", 1 << 10),
        ];
        for (unit, bytes) in units {
            if self.0 >= bytes {
                let value = self.0 as f64 / bytes as f64;
                return if self.0.is_multiple_of(bytes) {
                    write!(f, "{}{unit}", self.0 / bytes)
                } else {
                    write!(f, "{value:.2}{unit}")
                };
            }
        }
        write!(f, "{}B", self.0)
    }
}

/// A number of bytes per second: a size, with `/s` or without.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteRate(pub u64);

impl FromStr for ByteRate {
    type Err = String;

    fn from_str(text: &str) -> Result<ByteRate, String> {
        let text = text.trim();
        let size = text.strip_suffix("/s").unwrap_or(text);
        match size.parse() {
            Ok(ByteSize(bytes)) => Ok(ByteRate(bytes)),
            Err(_) => Err(format!(
                "{text:?} is not a rate; write bytes per second, or 64MiB/s, 50MB/s, 1.5GiB/s"
            )),
        }
    }
}

impl fmt::Display for ByteRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/s", ByteSize(self.0))
    }
}

/// How a report is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// One JSON document; of a failure without a result `{"error": ...}`.
    Json,
}

/// Only `preadv2` and `pwritev2` pass the flag of mode `dontcache`, and those are called by threads.
/// `modes`: each option of a mode, and whether it says `dontcache`.
///
/// # Errors
/// If both are asked for.
pub fn refuse_uring_with_dontcache(
    backend: BackendKind,
    modes: &[(&str, bool)],
) -> Result<(), Error> {
    let dontcache = modes.iter().find(|(_, is_dontcache)| *is_dontcache);
    match (backend, dontcache) {
        (BackendKind::Uring | BackendKind::TokioUring, Some((option, _))) => {
            Err(Error::invalid(format!(
                "{option}: dontcache does not go with --backend {backend}, which cannot pass RWF_DONTCACHE; \
             use --backend auto or threads, or choose dontneed"
            )))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        for (text, bytes) in [
            ("0", 0),
            ("17", 17),
            ("16KiB", 16384),
            ("2 MiB", 2 << 20),
            ("1g", 1 << 30),
            ("1.5GiB", 3 << 29),
            ("0.25KiB", 256),
            ("1.50KiB", 1536),
            ("0.3KiB", 307),
            ("16KB", 16_000),
            ("64MB", 64_000_000),
            ("1gb", 1_000_000_000),
            ("1.5TB", 1_500_000_000_000),
            ("16777215TiB", 16_777_215 << 40),
            ("1.0000000000000000000000000000000000GiB", 1 << 30),
        ] {
            assert_eq!(text.parse::<ByteSize>().unwrap().0, bytes, "{text}");
        }
        for text in [
            "",
            "KiB",
            "-1",
            "1.5",
            "1.5b",
            ".5GiB",
            "1.GiB",
            "1.2.3GiB",
            "1,5GiB",
            "16KBit",
            "64MB/s",
            "16777216TiB",
            "99999999999999999999TiB",
            "1.99999999999999999999GiB",
            &format!("1.{}GiB", "0".repeat(40)),
            &format!("1.{}GiB", "0".repeat(128)),
        ] {
            assert!(text.parse::<ByteSize>().is_err(), "{text}");
        }
        assert_eq!(ByteSize(16 << 10).to_string(), "16KiB");
        assert_eq!(ByteSize(1536).to_string(), "1.50KiB");
        assert_eq!(ByteSize(5).to_string(), "5B");
    }

    #[test]
    fn rates() {
        for (text, bytes) in [
            ("50MB/s", 50_000_000),
            ("64MiB/s", 64 << 20),
            ("64MiB", 64 << 20),
            ("1048576", 1 << 20),
            ("1.5 GiB/s", 3 << 29),
        ] {
            assert_eq!(text.parse::<ByteRate>().unwrap().0, bytes, "{text}");
        }
        for text in ["", "/s", "64MiB/min", "64MiBps", "64MiB/s/s", "fast"] {
            let message = text.parse::<ByteRate>().unwrap_err();
            assert!(message.contains("50MB/s"), "{text}: {message}");
        }
        assert_eq!(ByteRate(1 << 20).to_string(), "1MiB/s");
    }
}
