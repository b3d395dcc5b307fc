//! Forms of options in JSON.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serializer};

/// A duration as seconds.
pub(crate) mod seconds {
    use std::time::Duration;

    use super::*;

    pub(crate) fn serialize<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_f64(time.as_secs_f64())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        Duration::try_from_secs_f64(f64::deserialize(from)?).map_err(D::Error::custom)
    }
}

/// Values with a form as text.
pub(crate) mod text {
    use std::fmt::Display;
    use std::str::FromStr;

    use super::*;

    pub(crate) fn serialize<T: Display, S: Serializer>(it: &T, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(it)
    }

    pub(crate) fn deserialize<'de, T, D>(from: D) -> Result<T, D::Error>
    where
        T: FromStr<Err: Display>,
        D: Deserializer<'de>,
    {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}
