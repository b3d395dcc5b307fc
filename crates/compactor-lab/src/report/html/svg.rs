//! A picture as SVG inside HTML.

use super::markup::escaped;
use super::palette::Stroke;

/// Where a text begins, of its place.
#[derive(Clone, Copy, Debug)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// A picture that is being drawn. Lengths are CSS pixels if it is shown at its own size.
#[derive(Debug)]
pub(super) struct Svg {
    width: f64,
    height: f64,
    body: String,
}

impl Svg {
    pub(super) fn new(width: f64, height: f64) -> Svg {
        Svg {
            width,
            height,
            body: String::new(),
        }
    }

    pub(super) fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        self.body.push_str(&format!(
            "<line class=\"{class}\" x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\"/>\n",
            from.0, from.1, to.0, to.1
        ));
    }

    pub(super) fn rectangle(&mut self, class: &str, left_top: (f64, f64), size: (f64, f64)) {
        let (width, height) = (size.0.max(0.0), size.1.max(0.0));
        self.body.push_str(&format!(
            "<rect class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{width:.1}\" \
             height=\"{height:.1}\"/>\n",
            left_top.0, left_top.1
        ));
    }

    pub(super) fn circle(&mut self, class: &str, centre: (f64, f64), radius: f64) {
        self.body.push_str(&format!(
            "<circle class=\"{class}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"{radius:.1}\"/>\n",
            centre.0, centre.1
        ));
    }

    /// A line through points; nothing of fewer than two.
    pub(super) fn path(&mut self, class: &str, stroke: Stroke, points: &[(f64, f64)]) {
        if points.len() < 2 {
            return;
        }
        let places: Vec<String> = points
            .iter()
            .map(|(x, y)| format!("{x:.1},{y:.1}"))
            .collect();
        let dashes = match stroke.dashes {
            "" => String::new(),
            dashes => format!(" stroke-dasharray=\"{dashes}\""),
        };
        self.body.push_str(&format!(
            "<polyline class=\"{class} {}\"{dashes} points=\"{}\"/>\n",
            stroke.class,
            places.join(" ")
        ));
    }

    pub(super) fn text(&mut self, class: &str, place: (f64, f64), anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        self.body.push_str(&format!(
            "<text class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{}</text>\n",
            place.0,
            place.1,
            escaped(text)
        ));
    }

    /// The element. `id` is unique in the page; title and description are for those who do not see it.
    pub(super) fn finish(self, id: &str, class: &str, title: &str, description: &str) -> String {
        let Svg {
            width,
            height,
            body,
        } = self;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"{class}\" role=\"img\" \
             aria-labelledby=\"{id}-t {id}-d\" viewBox=\"0 0 {width:.0} {height:.0}\" \
             width=\"{width:.0}\" height=\"{height:.0}\">\n\
             <title id=\"{id}-t\">{}</title>\n<desc id=\"{id}-d\">{}</desc>\n{body}</svg>\n",
            escaped(title),
            escaped(description)
        )
    }
}
