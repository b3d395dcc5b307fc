//! Names of arms at the ends of their lines, or below the picture where there is no room beside it.

use super::axis::spread;
use super::palette::Stroke;
use super::svg::{Anchor, Svg};

/// How wide a picture is, and so where its names are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// For a page as wide as a desk's: names stand beside the lines.
    Wide,
    /// For a telephone: names stand below.
    Narrow,
}

impl Room {
    pub(super) const BOTH: [Room; 2] = [Room::Wide, Room::Narrow];

    pub(super) fn width(self) -> f64 {
        match self {
            Room::Wide => 1000.0,
            Room::Narrow => 380.0,
        }
    }

    /// Right of the plot.
    pub(super) fn margin(self) -> f64 {
        match self {
            Room::Wide => 170.0,
            Room::Narrow => 12.0,
        }
    }

    /// Class that shows the picture on such pages only.
    pub(super) fn class(self) -> &'static str {
        match self {
            Room::Wide => "if-wide",
            Room::Narrow => "if-narrow",
        }
    }

    pub(super) fn suffix(self) -> &'static str {
        match self {
            Room::Wide => "w",
            Room::Narrow => "n",
        }
    }

    /// Height that the names of so many lines take below the picture.
    pub(super) fn below(self, lines: usize) -> f64 {
        match self {
            Room::Wide => 0.0,
            Room::Narrow => lines as f64 * GAP + 8.0,
        }
    }
}

const GAP: f64 = 16.0;

/// A name and the end of its line.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) stroke: Stroke,
    pub(super) end: (f64, f64),
}

/// Writes the names. `plot` is the place right of which, or below which, there is room for them, `top`
/// that up to which they may go.
pub(super) fn draw(svg: &mut Svg, room: Room, entries: &[Entry], plot: (f64, f64), top: f64) {
    match room {
        Room::Wide => {
            let ends: Vec<f64> = entries.iter().map(|entry| entry.end.1).collect();
            let places = spread(&ends, GAP, top, plot.1);
            for (entry, y) in entries.iter().zip(places) {
                let x = plot.0 + 12.0;
                let leader = [entry.end, (plot.0, entry.end.1), (x, y)];
                svg.path("leader", entry.stroke, &leader);
                let class = format!("label {}", entry.stroke.class);
                svg.text(&class, (x + 4.0, y + 4.0), Anchor::Start, &entry.name);
            }
        }
        Room::Narrow => {
            // From the top of the picture to its bottom, as the lines end.
            let mut sorted: Vec<&Entry> = entries.iter().collect();
            sorted.sort_by(|a, b| a.end.1.total_cmp(&b.end.1));
            for (at, entry) in sorted.into_iter().enumerate() {
                let y = plot.1 + (at as f64 + 0.5) * GAP;
                svg.path("line", entry.stroke, &[(10.0, y), (44.0, y)]);
                let class = format!("label {}", entry.stroke.class);
                svg.text(&class, (52.0, y + 4.0), Anchor::Start, &entry.name);
            }
        }
    }
}
