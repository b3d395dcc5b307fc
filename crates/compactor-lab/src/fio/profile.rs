//! The profiles of `fio-profiles/`, whose README describes what each models.

use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr, VariantArray};

/// A profile, by the name of its file.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    Display,
    EnumString,
    IntoStaticStr,
    VariantArray,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case", parse_err_ty = String, parse_err_fn = no_profile)]
pub enum Profile {
    /// Point reads of a hot file, alone.
    #[serde(rename = "foreground", alias = "bystander")]
    #[strum(to_string = "foreground", serialize = "bystander")]
    Foreground,
    /// During a compaction through the page cache.
    MixBuffered,
    /// During one whose writes are written back every 10 MiB.
    MixTrickle,
    /// During one that bypasses the page cache.
    MixDirect,
    /// During one whose pages are dropped after use.
    MixUncached,
    /// One direct reader, in order.
    CeilingSequentialRead,
    /// One direct writer, in order.
    CeilingSequentialWrite,
    /// Direct readers of pages at random.
    #[serde(rename = "ceiling-random-read-4k")]
    #[strum(serialize = "ceiling-random-read-4k")]
    CeilingRandomRead4k,
    /// Direct readers of chunks at random.
    #[serde(rename = "ceiling-random-read-16k")]
    #[strum(serialize = "ceiling-random-read-16k")]
    CeilingRandomRead16k,
}

impl Profile {
    /// All, in the order of the README.
    pub const ALL: &[Profile] = Profile::VARIANTS;

    /// Name of its file, without `.fio`.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Whether it has a foreground load.
    pub fn is_mix(self) -> bool {
        !self.name().starts_with("ceiling")
    }

    /// The arm of the interference experiment that does the same.
    pub fn arm(self) -> Option<&'static str> {
        Some(match self {
            Profile::Foreground => "idle",
            Profile::MixBuffered => "buffered/buffered",
            Profile::MixTrickle => "buffered/trickle",
            Profile::MixDirect => "direct/direct",
            Profile::MixUncached => "dontcache/dontcache",
            _ => return None,
        })
    }
}

fn no_profile(_: &str) -> String {
    let names: Vec<&str> = Profile::ALL.iter().map(|p| p.name()).collect();
    format!("unknown profile; there are {}", names.join(", "))
}

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("../../../../fio-profiles/", $name)))),*]
    };
}

/// Every file that fio reads: the profiles and what they include.
pub(super) const FILES: [(&str, &str); 12] = files![
    "foreground.fio",
    "foreground.inc",
    "ceiling-random-read-16k.fio",
    "ceiling-random-read-4k.fio",
    "ceiling-sequential-read.fio",
    "ceiling-sequential-write.fio",
    "compaction-input.inc",
    "compaction-output.inc",
    "mix-buffered.fio",
    "mix-direct.fio",
    "mix-trickle.fio",
    "mix-uncached.fio",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_profile_has_its_files() {
        for &profile in Profile::ALL {
            let file = format!("{profile}.fio");
            let (_, text) = FILES.iter().find(|(name, _)| *name == file).unwrap();
            for line in text.lines() {
                if let Some(included) = line.strip_prefix("include ") {
                    assert!(FILES.iter().any(|(name, _)| *name == included), "{file}");
                }
            }
            assert_eq!(text.contains("[foreground]"), profile.is_mix(), "{file}");
            assert_eq!(profile.name().parse(), Ok(profile));
            let json = serde_json::to_string(&profile).unwrap();
            assert_eq!(json, format!("\"{profile}\""));
            let arm = profile.arm().map(str::parse::<crate::arm::Arm>);
            assert!(arm.is_none_or(|arm| arm.is_ok()), "{profile}");
        }
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fio-profiles");
        let there = std::fs::read_dir(directory).unwrap().filter(|entry| {
            let name = entry.as_ref().unwrap().file_name();
            let name = name.to_string_lossy();
            name.ends_with(".fio") || name.ends_with(".inc")
        });
        assert_eq!(there.count(), FILES.len(), "a file is not embedded");
    }
}
