//! Outputs of a merge: where one ends and the next begins.

use compactor_strategy::task::{Output, Split};

use crate::cohort::{Cohort, joined};
use crate::stored::{Range, Stored, bytes_of};
use crate::workload::Workload;

/// Merged rows of a segment.
#[derive(Clone, Debug)]
pub(crate) struct Merged {
    pub(crate) range: Range,
    pub(crate) cohorts: Vec<Cohort>,
}

/// Collects merged segments and ends outputs.
#[derive(Debug)]
struct Splitter<'a> {
    workload: &'a Workload,
    generation: u32,
    /// Parts of the output that is not ended, and their bytes.
    parts: Vec<Merged>,
    bytes: f64,
    outputs: Vec<Stored>,
}

/// Divides merged segments into outputs.
pub(crate) fn split(
    merged: Vec<Merged>,
    output: &Output,
    generation: u32,
    workload: &Workload,
) -> Vec<Stored> {
    let mut splitter = Splitter {
        workload,
        generation,
        parts: Vec::new(),
        bytes: 0.0,
        outputs: Vec::new(),
    };
    let all: f64 = merged.iter().map(|m| bytes_of(&m.cohorts, workload)).sum();
    match &output.split {
        Split::None => merged.into_iter().for_each(|m| splitter.push(m)),
        Split::Shards(shards) => {
            let mut ends = shards.boundaries.iter().map(|token| token.0 + 1).peekable();
            for mut rest in merged {
                while ends.next_if(|end| *end <= rest.range.start).is_some() {
                    splitter.end();
                }
                while let Some(end) = ends.next_if(|end| *end < rest.range.end) {
                    let (before, after) = cut(rest, end);
                    splitter.push(before);
                    splitter.end();
                    rest = after;
                }
                splitter.push(rest);
            }
        }
        Split::MaxBytes(max) => splitter.push_by_size(merged, |_| *max as f64),
        Split::Levels(levels) => splitter.push_by_size(merged, |_| levels.sstable_bytes as f64),
        Split::Halves { min_bytes } => {
            let smallest = *min_bytes as f64;
            splitter.push_by_size(merged, |output| {
                let part = all / 2f64.powi(output as i32 + 1);
                if part < smallest { f64::INFINITY } else { part }
            });
        }
    }
    splitter.end();
    splitter.outputs
}

/// Bytes by which an output may be larger, instead of another with hardly anything.
fn slack(workload: &Workload) -> f64 {
    2.0 * workload.stored_row_bytes()
}

impl Splitter<'_> {
    fn push(&mut self, part: Merged) {
        self.bytes += bytes_of(&part.cohorts, self.workload);
        self.parts.push(part);
    }

    /// Ends an output once it has the bytes that `max` allows for, by its index.
    fn push_by_size(&mut self, merged: Vec<Merged>, max: impl Fn(usize) -> f64) {
        for mut rest in merged {
            loop {
                let bytes = bytes_of(&rest.cohorts, self.workload);
                let room = max(self.outputs.len()) - self.bytes;
                if bytes <= room + slack(self.workload) {
                    self.push(rest);
                    break;
                }
                let width = (rest.range.width() * (room.max(0.0) / bytes)) as i128;
                let at = rest.range.start + width;
                if at > rest.range.start {
                    let (before, after) = cut(rest, at);
                    self.push(before);
                    rest = after;
                } else if self.parts.is_empty() {
                    // A single token has more than an output.
                    self.push(rest);
                    break;
                }
                self.end();
            }
        }
    }

    fn end(&mut self) {
        let parts = std::mem::take(&mut self.parts);
        self.bytes = 0.0;
        let (Some(first), Some(last)) = (parts.first(), parts.last()) else {
            return;
        };
        let range = Range {
            start: first.range.start,
            end: last.range.end,
        };
        let cohorts = match parts.len() {
            1 => parts.into_iter().flat_map(|part| part.cohorts).collect(),
            _ => {
                let scaled = parts.iter().flat_map(|part| {
                    let coverage = part.range.width() / range.width();
                    part.cohorts.iter().map(move |c| c.scaled(1.0, coverage))
                });
                joined(scaled.collect())
            }
        };
        // What has less than a row has nothing.
        let rows: f64 = cohorts.iter().map(|cohort| cohort.rows).sum();
        if rows >= 0.5 {
            self.outputs
                .push(Stored::new(range, cohorts, self.generation));
        }
    }
}

/// Divides rows at a token within their range.
fn cut(merged: Merged, at: i128) -> (Merged, Merged) {
    let Merged { range, cohorts } = merged;
    let part = (at - range.start) as f64 / range.width();
    let after = cohorts.iter().map(|c| c.scaled(1.0 - part, 1.0)).collect();
    let before = cohorts.iter().map(|c| c.scaled(part, 1.0)).collect();
    let (start, end) = (range.start, range.end);
    (
        Merged {
            range: Range { start, end: at },
            cohorts: before,
        },
        Merged {
            range: Range { start: at, end },
            cohorts: after,
        },
    )
}

#[cfg(test)]
mod tests {
    use compactor_strategy::task::Shards;
    use compactor_strategy::token::Token;

    use super::*;
    use crate::cohort::Kind;

    fn merged(start: i128, end: i128, rows: f64) -> Merged {
        Merged {
            range: Range { start, end },
            cohorts: vec![Cohort {
                class: 0,
                kind: Kind::Live,
                bucket: 0,
                oldest_us: 0,
                newest_us: 0,
                rows,
                cover: 0.0,
            }],
        }
    }

    /// Range and rows of the outputs, of rows of 1024 bytes.
    fn outputs(merged: Vec<Merged>, split_at: Split) -> Vec<(i128, i128, f64)> {
        let output = Output {
            level: 1,
            split: split_at,
        };
        let outputs = split(merged, &output, 1, &Workload::default());
        let of = |o: &Stored| (o.range.start, o.range.end, o.cohorts[0].rows.round());
        outputs.iter().map(of).collect()
    }

    #[test]
    fn by_size() {
        let parts = || vec![merged(0, 100, 100.0), merged(100, 200, 300.0)];
        assert_eq!(
            outputs(parts(), Split::MaxBytes(160 << 10)),
            [(0, 120, 160.0), (120, 173, 159.0), (173, 200, 81.0)]
        );
        assert_eq!(
            outputs(
                parts(),
                Split::Halves {
                    min_bytes: 90 << 10
                }
            ),
            [(0, 133, 199.0), (133, 166, 99.0), (166, 200, 102.0)]
        );
        assert_eq!(outputs(parts(), Split::None), [(0, 200, 400.0)]);
    }

    #[test]
    fn by_token() {
        let shards = Split::Shards(Shards {
            boundaries: [-1, 49, 99, 149].map(Token).to_vec(),
            is_parallel: false,
        });
        assert_eq!(
            outputs(vec![merged(0, 100, 100.0), merged(100, 200, 300.0)], shards),
            [
                (0, 50, 50.0),
                (50, 100, 50.0),
                (100, 150, 150.0),
                (150, 200, 150.0)
            ]
        );
    }

    #[test]
    fn nothing_is_written_of_no_rows() {
        assert_eq!(outputs(vec![merged(0, 100, 0.0)], Split::None), []);
    }
}
