//! Colours and strokes of arms.
//!
//! Hues are those of M. Okabe and K. Ito's *Color Universal Design* palette, which people with any
//! colour vision tell apart, made darker for light paper and lighter for dark; texts in them are
//! readable (WCAG 2.2, 1.4.3). Each arm is also named beside its line, and beyond eight arms strokes
//! are broken.

use crate::arm::Arm;

/// Background, light and dark.
pub(super) const PAPER: [&str; 2] = ["#ffffff", "#14171c"];
/// Text.
pub(super) const INK: [&str; 2] = ["#1b1f24", "#e8ebef"];
/// Text beside the point, axes, the idle arm.
pub(super) const FAINT_INK: [&str; 2] = ["#59616b", "#a6aebb"];
/// Lines of a grid, borders.
const GRID: [&str; 2] = ["#dfe3e8", "#313842"];
/// Behind the time of the compaction, and warnings.
const SHADE: [&str; 2] = ["#f1f3f6", "#1f242b"];
/// Border of warnings.
const ALARM: [&str; 2] = ["#b35c00", "#f0a04b"];
/// Arms.
pub(super) const ARMS: [[&str; 2]; 8] = [
    ["#b84300", "#ff9a57"],
    ["#0062a8", "#6db3f2"],
    ["#00704f", "#3fcf9f"],
    ["#9c3587", "#e18fd0"],
    ["#7a5c00", "#e0c04a"],
    ["#0a7590", "#7fdcf0"],
    ["#a3123a", "#ff8a9a"],
    ["#4b4fb5", "#a9aefb"],
];

/// Strokes: whole, then broken.
const DASHES: [&str; 3] = ["", "7 3", "2 3"];

/// How an arm is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stroke {
    /// Class that sets the colour.
    pub(super) class: &'static str,
    /// Value of `stroke-dasharray`.
    pub(super) dashes: &'static str,
}

impl Stroke {
    /// The same in one piece.
    pub(super) fn whole(self) -> Stroke {
        Stroke { dashes: "", ..self }
    }
}

const CLASSES: [&str; 8] = ["a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7"];

/// How each arm is drawn, wherever it is.
pub(super) fn stroke(arms: impl Iterator<Item = Arm>, arm: Arm) -> Stroke {
    if arm == Arm::Idle {
        return Stroke {
            class: "idle",
            dashes: "1 3",
        };
    }
    let mut compactions = arms.filter(|arm| *arm != Arm::Idle);
    let at = compactions.position(|other| other == arm).unwrap_or(0);
    numbered(at)
}

/// How the so many-th of several is drawn.
pub(super) fn numbered(at: usize) -> Stroke {
    let pick = |from: &[&'static str], at: usize| from.get(at % from.len()).copied();
    Stroke {
        class: pick(&CLASSES, at).unwrap_or("a0"),
        dashes: pick(&DASHES, at / CLASSES.len()).unwrap_or(""),
    }
}

/// The colours as custom properties, and the classes of arms.
pub(super) fn style() -> String {
    let properties = |theme: usize| {
        let named = [
            ("paper", PAPER),
            ("ink", INK),
            ("faint", FAINT_INK),
            ("grid", GRID),
            ("shade", SHADE),
            ("alarm", ALARM),
        ];
        let of = |colours: &[&'static str; 2]| colours.get(theme).copied().unwrap_or("#000");
        let mut out: String = named
            .iter()
            .map(|(name, colours)| format!("--{name}:{};", of(colours)))
            .collect();
        for (class, colours) in CLASSES.iter().zip(&ARMS) {
            out.push_str(&format!("--{class}:{};", of(colours)));
        }
        out
    };
    let mut out = format!(
        ":root{{color-scheme:light dark;{}}}\n\
         @media screen and (prefers-color-scheme:dark){{:root{{{}}}}}\n\
         .idle{{--arm:var(--faint)}}\n",
        properties(0),
        properties(1)
    );
    for class in CLASSES {
        out.push_str(&format!(".{class}{{--arm:var(--{class})}}\n"));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture::arms;

    /// Relative luminance as WCAG defines it.
    fn luminance(colour: &str) -> f64 {
        let channel = |at: usize| {
            let value = u8::from_str_radix(&colour[at..at + 2], 16).unwrap();
            let value = f64::from(value) / 255.0;
            if value <= 0.040_45 {
                value / 12.92
            } else {
                ((value + 0.055) / 1.055).powf(2.4)
            }
        };
        0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
    }

    fn contrast(a: &str, b: &str) -> f64 {
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    #[test]
    fn every_colour_can_be_read_on_either_paper() {
        assert!((contrast("#ffffff", "#000000") - 21.0).abs() < 1e-9);
        for theme in [0, 1] {
            for colour in ARMS.iter().chain([&INK, &FAINT_INK]) {
                for behind in [PAPER, SHADE] {
                    let ratio = contrast(colour[theme], behind[theme]);
                    assert!(
                        ratio >= 4.5,
                        "{} on {}: {ratio}",
                        colour[theme],
                        behind[theme]
                    );
                }
            }
        }
    }

    #[test]
    fn no_two_arms_look_alike() {
        let mut texts = Vec::new();
        for read in ["buffered", "dontneed", "dontcache", "direct"] {
            for write in ["buffered", "trickle", "dontneed", "dontcache", "direct"] {
                texts.push(format!("{read}/{write}"));
            }
        }
        texts.push("idle".to_owned());
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let arms = arms(&texts);
        let strokes: Vec<Stroke> = arms
            .iter()
            .map(|&arm| stroke(arms.iter().copied(), arm))
            .collect();
        for (at, stroke) in strokes.iter().enumerate() {
            assert!(!strokes[..at].contains(stroke), "{at}");
        }
    }
}
