//! UTF-8 as accepted by Cassandra, which includes invalid UTF-8.

/// Expectation for the next byte.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Start,
    /// `80` after `C0`: the zero of modified UTF-8.
    Zero,
    /// This number of further bytes from `80` to `BF`.
    Continuation(u8),
    /// Second byte after `E0`.
    AfterE0,
    /// Second byte after `F0`.
    AfterF0,
}

/// Whether Cassandra accepts the bytes. It accepts surrogates, `C0 80`, code points above 10FFFF and a few
/// stray second bytes, because clients have always been able to write them.
///
/// Source: `UTF8Serializer.UTF8Validator`.
pub(super) fn is_valid(bytes: &[u8]) -> bool {
    if std::str::from_utf8(bytes).is_ok() {
        return true;
    }
    let mut state = State::Start;
    for &byte in bytes {
        let continues = byte & 0xc0 == 0x80;
        state = match state {
            State::Start => match byte {
                0x00..=0x7f => State::Start,
                0xc0 => State::Zero,
                0xc2..=0xdf => State::Continuation(1),
                0xe0 => State::AfterE0,
                0xe1..=0xef => State::Continuation(2),
                0xf0 => State::AfterF0,
                0xf1..=0xf7 => State::Continuation(3),
                _ => return false,
            },
            State::Zero if byte == 0x80 => State::Start,
            State::Continuation(1) if continues => State::Start,
            State::Continuation(left) if continues => State::Continuation(left - 1),
            State::AfterE0 if byte & 0xe0 != 0x80 => State::Continuation(1),
            State::AfterF0 if byte & 0x30 != 0 => State::Continuation(2),
            _ => return false,
        };
    }
    state == State::Start
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_text_that_clients_could_write() {
        for valid in [
            "".as_bytes(),
            "aé€😀".as_bytes(),
            &[0xc0, 0x80],
            &[0xed, 0xa0, 0xbd, 0xed, 0xb8, 0x80],
            &[0xf5, 0x80, 0x80, 0x80],
            &[0xe0, 0x41, 0x80],
        ] {
            assert!(is_valid(valid), "{valid:x?}");
        }
        for invalid in [
            &[0x80][..],
            &[0xc0, 0x81],
            &[0xc1, 0x80],
            &[0xc3],
            &[0xe0, 0x80, 0x80],
            &[0xe2, 0x82],
            &[0xf0, 0x80, 0x80, 0x80],
            &[0xf8, 0x80, 0x80, 0x80],
            &[0xff],
            &[b'a', 0xc3, b'a'],
        ] {
            assert!(!is_valid(invalid), "{invalid:x?}");
        }
    }
}
