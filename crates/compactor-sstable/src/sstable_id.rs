//! SSTable identifiers: the second token of a file name.
//!
//! ```text
//! sequence   1 to 10 decimal digits, at most 2147483647
//! uuid       dddd_ssss_nnnnnlllllllllllll, base 36: days since 1582-10-15, seconds of the day,
//!            100 ns ticks of the second, unsigned low half of a version-1 UUID
//! ```
//!
//! Source: `SSTableIdFactory`, `SequenceBasedSSTableId`, `UUIDBasedSSTableId`.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

const TICKS_PER_SECOND: i64 = 10_000_000;
const SECONDS_PER_DAY: i64 = 86_400;
const UUID_TEXT_LEN: usize = 28;
/// Number of ticks in 36^4 days, the range of four base-36 digits.
const MAX_TICKS: i64 = 36i64.pow(4) * SECONDS_PER_DAY * TICKS_PER_SECOND - 1;

/// Id of an SSTable, unique in its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SstableId {
    /// A sequence number per table.
    Sequence(u32),
    /// A version-1 UUID.
    Uuid {
        /// 60-bit timestamp: 100 ns ticks since 1582-10-15.
        ticks: i64,
        /// Lower half: variant, clock sequence and node.
        lsb: i64,
    },
}

impl SstableId {
    /// Creates a UUID id, as `TimeUUID.Generator.nextTimeUUID` does. Clock and lower half come from the
    /// caller: this crate reads neither clocks nor randomness.
    ///
    /// # Errors
    /// `ticks` is negative or too large for the text form, which ends in the year 6181.
    pub fn from_uuid_parts(ticks: i64, lsb: i64) -> Result<SstableId, InvalidSstableId> {
        if (0..=MAX_TICKS).contains(&ticks) {
            Ok(SstableId::Uuid { ticks, lsb })
        } else {
            Err(InvalidSstableId {
                text: format!("UUID timestamp {ticks}"),
                why: "out of range",
            })
        }
    }

    /// Converts a time since 1970 to the ticks of a version-1 UUID.
    pub fn ticks_from_unix(seconds: i64, nanos: u32) -> i64 {
        const UUID_EPOCH_TO_UNIX_SECONDS: i64 = 12_219_292_800;
        (seconds + UUID_EPOCH_TO_UNIX_SECONDS) * TICKS_PER_SECOND + i64::from(nanos / 100)
    }

    /// Returns the sequence id after the greatest one in `existing`, ignoring UUID ids
    /// (`SequenceBasedSSTableId.Builder.generator`).
    ///
    /// `None` if no number is left.
    pub fn next_sequence(existing: impl IntoIterator<Item = SstableId>) -> Option<SstableId> {
        let greatest = existing
            .into_iter()
            .filter_map(|id| match id {
                SstableId::Sequence(number) => Some(number),
                SstableId::Uuid { .. } => None,
            })
            .max()
            .unwrap_or(0);
        SstableId::Sequence(greatest).next()
    }

    /// Returns the sequence id after this one; `None` for a UUID or if no number is left.
    #[must_use]
    pub fn next(self) -> Option<SstableId> {
        match self {
            SstableId::Sequence(number) if number < i32::MAX as u32 => {
                Some(SstableId::Sequence(number + 1))
            }
            _ => None,
        }
    }
}

/// `SSTableIdFactory.COMPARATOR`: UUIDs sort after numbers, and among one another by time, then by the lower
/// half as a signed number.
impl Ord for SstableId {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (SstableId::Sequence(a), SstableId::Sequence(b)) => a.cmp(b),
            (SstableId::Sequence(_), SstableId::Uuid { .. }) => Ordering::Less,
            (SstableId::Uuid { .. }, SstableId::Sequence(_)) => Ordering::Greater,
            (SstableId::Uuid { ticks: t1, lsb: l1 }, SstableId::Uuid { ticks: t2, lsb: l2 }) => {
                t1.cmp(t2).then(l1.cmp(l2))
            }
        }
    }
}

impl PartialOrd for SstableId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for SstableId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            SstableId::Sequence(number) => write!(f, "{number}"),
            SstableId::Uuid { ticks, lsb } => {
                let in_second = ticks % TICKS_PER_SECOND;
                let seconds = ticks / TICKS_PER_SECOND;
                let mut text = [b'_'; UUID_TEXT_LEN];
                put_base36(&mut text[0..4], (seconds / SECONDS_PER_DAY) as u64);
                put_base36(&mut text[5..9], (seconds % SECONDS_PER_DAY) as u64);
                put_base36(&mut text[10..15], in_second as u64);
                put_base36(&mut text[15..28], lsb as u64);
                f.write_str(std::str::from_utf8(&text).map_err(|_| fmt::Error)?)
            }
        }
    }
}

fn put_base36(out: &mut [u8], mut value: u64) {
    for digit in out.iter_mut().rev() {
        *digit = b"0123456789abcdefghijklmnopqrstuvwxyz"[(value % 36) as usize];
        value /= 36;
    }
}

fn parse_base36(text: &str) -> Option<u64> {
    if text
        .bytes()
        .any(|b| !b.is_ascii_digit() && !b.is_ascii_lowercase())
    {
        return None;
    }
    u64::from_str_radix(text, 36).ok()
}

fn parse_uuid(text: &str) -> Option<SstableId> {
    if text.len() != UUID_TEXT_LEN || !text.is_ascii() {
        return None;
    }
    let bytes = text.as_bytes();
    if bytes[4] != b'_' || bytes[9] != b'_' {
        return None;
    }
    let days = parse_base36(&text[0..4])? as i64;
    let seconds = parse_base36(&text[5..9])? as i64;
    let in_second = parse_base36(&text[10..15])? as i64;
    let lsb = parse_base36(&text[15..28])? as i64;
    // Four base-36 digits can exceed a day's seconds, five a second's ticks: such a name would be printed
    // differently.
    if seconds >= SECONDS_PER_DAY || in_second >= TICKS_PER_SECOND {
        return None;
    }
    let ticks = (days * SECONDS_PER_DAY + seconds) * TICKS_PER_SECOND + in_second;
    Some(SstableId::Uuid { ticks, lsb })
}

impl FromStr for SstableId {
    type Err = InvalidSstableId;

    /// Accepts only the output of [`fmt::Display`]: an id is part of a file name, so another spelling would
    /// name files that do not exist.
    fn from_str(text: &str) -> Result<SstableId, InvalidSstableId> {
        if let Some(id) = parse_uuid(text) {
            return Ok(id);
        }
        let why = match text.as_bytes() {
            [] => "empty",
            [b'0', _, ..] => "leading zeros",
            digits if digits.iter().all(u8::is_ascii_digit) => match text.parse::<i32>() {
                Ok(number) => return Ok(SstableId::Sequence(number as u32)),
                Err(_) => "greater than 2147483647",
            },
            _ => "neither a number nor a UUID in base 36",
        };
        Err(InvalidSstableId {
            text: text.to_owned(),
            why,
        })
    }
}

/// Text or bytes that are not a valid SSTable id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid SSTable id {text:?}: {why}")]
pub struct InvalidSstableId {
    text: String,
    why: &'static str,
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: &str = "3g7k_098r_4iud828utjt3hwnh1v";

    #[test]
    fn text_round_trip() {
        for text in ["0", "1", "2147483647", UUID, "3gsm_0lob_1zdg02we44my8dy25w"] {
            let id: SstableId = text.parse().unwrap();
            assert_eq!(id.to_string(), text);
        }
    }

    #[test]
    fn invalid_ids_are_refused() {
        for text in [
            "",
            "-1",
            "+1",
            "01",
            "2147483648",
            "99999999999999",
            "1a",
            "3G7K_098R_4IUD828UTJT3HWNH1V",
            // second 86400
            "3g7k_1uo0_4iud828utjt3hwnh1v",
            // the lower half exceeds 64 bits
            "3g7k_098r_4iudzzzzzzzzzzzzzz",
            "é",
        ] {
            assert!(text.parse::<SstableId>().is_err(), "{text}");
        }
        assert!(SstableId::from_uuid_parts(i64::MAX, 0).is_err());
    }

    #[test]
    fn uuids_follow_numbers_and_low_halves_are_signed() {
        let number = SstableId::Sequence(i32::MAX as u32);
        let low = SstableId::from_uuid_parts(5, i64::MIN).unwrap();
        let high = SstableId::from_uuid_parts(5, 1).unwrap();
        let later = SstableId::from_uuid_parts(6, i64::MIN).unwrap();
        assert!(number < low && low < high && high < later);
        assert!(SstableId::Sequence(9) < SstableId::Sequence(10));
    }

    #[test]
    fn next_number() {
        let uuid: SstableId = UUID.parse().unwrap();
        let ids = [SstableId::Sequence(3), uuid, SstableId::Sequence(7)];
        assert_eq!(SstableId::next_sequence(ids), Some(SstableId::Sequence(8)));
        assert_eq!(SstableId::next_sequence([]), Some(SstableId::Sequence(1)));
        assert_eq!(SstableId::Sequence(i32::MAX as u32).next(), None);
        assert_eq!(uuid.next(), None);
    }

    #[test]
    fn ticks_of_unix_time() {
        // 1970-01-01 in a version-1 UUID is 0x01B21DD213814000.
        assert_eq!(SstableId::ticks_from_unix(0, 0), 0x01b2_1dd2_1381_4000);
        assert_eq!(SstableId::ticks_from_unix(0, 250), 0x01b2_1dd2_1381_4002);
    }

    proptest::proptest! {
        #[test]
        fn any_uuid_round_trips(ticks in 0..=MAX_TICKS, lsb: i64) {
            let id = SstableId::from_uuid_parts(ticks, lsb).unwrap();
            let text = id.to_string();
            proptest::prop_assert_eq!(text.len(), UUID_TEXT_LEN);
            proptest::prop_assert_eq!(text.parse::<SstableId>().unwrap(), id);
        }
    }
}
