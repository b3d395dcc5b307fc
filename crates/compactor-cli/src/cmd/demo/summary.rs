//! Both merges side by side, as text or JSON.

use std::fmt::Write;

use compactor::MergeReport;

use super::Demo;
use crate::flags::{ByteSize, Format};
use crate::text_table::{aligned, count, counted, known, wrapped};

/// The comparison.
pub fn report(demo: &Demo, format: Format) -> anyhow::Result<String> {
    if format == Format::Json {
        return Ok(serde_json::to_string_pretty(demo)?);
    }
    let (direct, buffered) = (&demo.direct, &demo.buffered);
    let mut text = String::new();
    for note in &demo.place.notes {
        text.push_str(&wrapped("note: ", note));
    }
    if demo.place.direct {
        for note in direct.io.fallbacks.iter().chain(&buffered.io.fallbacks) {
            text.push_str(&wrapped("note: ", note));
        }
    }
    writeln!(text)?;
    let row = |label: &str, value: &dyn Fn(&MergeReport) -> String| {
        vec![label.to_owned(), value(direct), value(buffered)]
    };
    let rows = [
        row("merge of 3 SSTables", &|r| r.io.read_mode.clone()),
        row("time", &|r| format!("{:.2} s", r.elapsed_s)),
        row("throughput (uncompressed)", &|r| {
            format!("{:.0} MB/s", r.input_uncompressed_bytes_per_s / 1e6)
        }),
        row("CPU time", &|r| format!("{:.2} s", r.cpu_s)),
        row("peak memory of the process", &|r| {
            ByteSize(r.peak_rss_bytes).to_string()
        }),
        row("input pages left in the page cache", &|r| {
            of(r.page_cache.input_pages_resident, r.page_cache.input_pages)
        }),
        row("output pages left in the page cache", &|r| {
            of(
                r.page_cache.output_pages_resident,
                r.page_cache.output_pages,
            )
        }),
    ];
    text.push_str(&aligned(&rows));
    writeln!(text)?;
    sizes(demo, &mut text)?;
    verified(demo, &mut text)?;
    writeln!(text)?;
    meaning(demo, &mut text)?;
    Ok(text)
}

fn sizes(demo: &Demo, text: &mut String) -> std::fmt::Result {
    let r = &demo.direct;
    let line = |bytes, uncompressed, partitions| {
        format!(
            "{} on disk, {} uncompressed, {}",
            ByteSize(bytes),
            ByteSize(uncompressed),
            counted(partitions, "partition")
        )
    };
    let input = line(r.input_bytes, r.input_uncompressed_bytes, r.partitions_read);
    let output = line(
        r.output_bytes,
        r.output_uncompressed_bytes,
        r.partitions_written,
    );
    writeln!(text, "  inputs     {input}")?;
    writeln!(text, "  output     {output}")
}

fn verified(demo: &Demo, text: &mut String) -> std::fmt::Result {
    let v = &demo.verified;
    if v.is_damaged() {
        writeln!(
            text,
            "  verified   DAMAGED: {}",
            counted(v.damages, "finding")
        )?;
        for finding in &v.findings {
            writeln!(text, "             {finding}")?;
        }
    } else {
        writeln!(
            text,
            "  verified   {}, {}, every byte and every component: intact",
            counted(v.rows, "row"),
            counted(v.chunks, "chunk"),
        )?;
    }
    let same = if demo.outputs_are_identical {
        "the same in both merges, byte for byte"
    } else {
        "DIFFERENT in the two merges: this is a bug, please report it"
    };
    writeln!(text, "  outputs    {same}")
}

fn meaning(demo: &Demo, text: &mut String) -> std::fmt::Result {
    if demo.place.is_in_memory() {
        return writeln!(
            text,
            "In memory there is nothing to show: what is there is in the page cache, however it is \
             read.\nName a directory on a disk with --directory."
        );
    }
    let of_pages = |pages: Option<u64>| match pages {
        Some(pages) => ByteSize(pages * demo.direct.page_cache.page_bytes).to_string(),
        None => "an unknown number of pages".to_owned(),
    };
    let left = of_pages(demo.buffered.page_cache.pages_resident());
    let pages = demo.pages_left_by_direct();
    let name = &demo.direct.io.read_mode;
    match (demo.place.direct, pages) {
        (true, Some(0)) => writeln!(text, "The direct merge left nothing in the page cache.")?,
        (true, None) => writeln!(
            text,
            "The kernel does not tell here what is in the page cache."
        )?,
        (true, Some(pages)) => writeln!(
            text,
            "The direct merge left {} in the page cache, which should be none: this is a bug, \
             please report it.",
            counted(pages, "page")
        )?,
        (false, _) => writeln!(
            text,
            "Direct I/O does not work here, so the first merge used {name}: through the page cache,\n\
             dropping pages after reading them. It left {} there.",
            of_pages(pages)
        )?,
    }
    writeln!(
        text,
        "The buffered one left {left} there. On a node that is memory taken from the rows that\n\
         its reads have warmed, for files that nobody will read again soon.\n\
         `compactor doctor DIR` shows what works on another disk."
    )
}

fn of(part: Option<u64>, all: u64) -> String {
    format!("{} of {}", known(part), count(all))
}
