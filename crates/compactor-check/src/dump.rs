//! Prints the rows of an SSTable as JSON lines, as `sstabledump -l` does.
//!
//! One partition per line, which is written while the partition is read, so that memory does not depend on its size.
//! Field names, their order and the format of values are those of Cassandra's tool. Without options the output is
//! identical byte for byte, except for the newline at the end of the last line, which Cassandra omits.
//!
//! Source: `SSTableExport`, `JsonTransformer`.

mod index_keys;
mod partition_json;
mod row_deletion;

use std::io::Write;
use std::path::Path;

use compactor_engine::input::{InputSstable, Scan};
use compactor_engine::merge::Observer;
use compactor_engine::read::{BlockSource, Cursor, hex};
use compactor_io::{Io, ReadMode};
use compactor_sstable::Component;
use compactor_sstable::descriptor::TableDirectory;
use compactor_sstable::types::CqlType;

use crate::Result;
use crate::cancellation::check_cancelled;
use index_keys::IndexKeys;
use partition_json::PartitionJson;

/// Options of a dump.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DumpOptions {
    /// Print only partitions with one of these keys; all if empty. A key is given as Cassandra
    /// prints it, the parts of a composite one joined by `:`.
    pub keys: Vec<String>,
    /// Omit partitions with one of these keys. Takes precedence over `keys`.
    pub exclude: Vec<String>,
    /// Print timestamps as the numbers in the file instead of dates.
    pub raw_timestamps: bool,
    /// Print only deletions and expired data: partitions with a partition deletion, range tombstones, and rows with a
    /// deletion or with anything expired.
    pub tombstones_only: bool,
    /// Time that `"expired"` refers to, seconds since 1970.
    pub now_s: i64,
    /// How `Data.db` is read.
    pub read_mode: ReadMode,
}

impl DumpOptions {
    /// Options to dump everything, as of `now_s`.
    pub fn new(now_s: i64) -> DumpOptions {
        DumpOptions {
            keys: Vec::new(),
            exclude: Vec::new(),
            raw_timestamps: false,
            tombstones_only: false,
            now_s,
            read_mode: ReadMode::Auto,
        }
    }
}

/// Counts of a dump.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DumpSummary {
    /// Lines.
    pub partitions: u64,
    /// Keys of [`DumpOptions::keys`] that are not in the SSTable.
    pub missing_keys: Vec<String>,
}

/// Prints the partitions of the SSTable whose `Data.db` is `data`, one per line.
///
/// # Errors
/// Damage, an unsupported feature, a failed read, a failed write to `out`, or cancellation by the observer. Data
/// before damage is printed, and the last line may end within a partition.
pub fn dump(
    io: &Io,
    data: &Path,
    options: &DumpOptions,
    observer: &dyn Observer,
    out: &mut dyn Write,
) -> Result<DumpSummary> {
    let mut scan = Scan::open(io, data, options.read_mode)?;
    let mut selection = Selection::new(options);
    let mut json = PartitionJson::new(scan.sstable().header(), table_kind(data), options);
    let mut summary = DumpSummary::default();
    let cursor = scan.cursor();
    let printed = (|| -> Result<()> {
        while !selection.is_exhausted() && cursor.next_partition()? {
            if selection.takes(cursor.key(), &json.key_text(cursor.key())) {
                summary.partitions += u64::from(json.write_partition(cursor, observer, out)?);
            } else {
                skip_partition(cursor, observer)?;
            }
        }
        Ok(())
    })();
    // Rows before the damage are printed too.
    let flushed = json.flush(out);
    printed.and(flushed)?;
    summary.missing_keys = selection.into_missing();
    Ok(summary)
}

/// Prints the partition keys of the SSTable whose `Data.db` is `data`, each as an array on a line of
/// its own. They are read from `Index.db` where there is one; [`DumpOptions::keys`] and
/// [`DumpOptions::exclude`] apply.
///
/// # Errors
/// As [`dump`].
pub fn dump_keys(
    io: &Io,
    data: &Path,
    options: &DumpOptions,
    observer: &dyn Observer,
    out: &mut dyn Write,
) -> Result<DumpSummary> {
    let sstable = InputSstable::open(io, data, options.read_mode)?;
    let mut selection = Selection::new(options);
    let mut json = PartitionJson::new(sstable.header(), table_kind(data), options);
    let mut summary = DumpSummary::default();
    let mut print = |key: &[u8]| -> Result<bool> {
        check_cancelled(observer)?;
        if selection.takes(key, &json.key_text(key)) {
            json.write_key_line(key, out)?;
            summary.partitions += 1;
        }
        Ok(!selection.is_exhausted())
    };
    let printed = if sstable.has(Component::Index) {
        IndexKeys::open(io, &sstable, options.read_mode)?.for_each(&mut print)
    } else {
        keys_of_data(io, sstable, observer, &mut print)
    };
    let flushed = json.flush(out);
    printed.and(flushed)?;
    summary.missing_keys = selection.into_missing();
    Ok(summary)
}

/// Calls `print` with each key of `Data.db` until it returns false: formats other than BIG have no
/// `Index.db`.
fn keys_of_data(
    io: &Io,
    sstable: InputSstable,
    observer: &dyn Observer,
    print: &mut dyn FnMut(&[u8]) -> Result<bool>,
) -> Result<()> {
    let mut scan = Scan::start(io, sstable)?;
    let cursor = scan.cursor();
    while cursor.next_partition()? {
        if !print(cursor.key())? {
            break;
        }
        skip_partition(cursor, observer)?;
    }
    Ok(())
}

/// Moves to the end of the current partition.
fn skip_partition<S: BlockSource>(cursor: &mut Cursor<S>, observer: &dyn Observer) -> Result<()> {
    loop {
        check_cancelled(observer)?;
        cursor.next_unfiltered()?;
        if cursor.clustering().is_none() {
            return Ok(());
        }
    }
}

/// `TableMetadata.Kind` according to the directory: the hidden table of a secondary index has a subdirectory.
fn table_kind(data: &Path) -> &'static str {
    let data = data.canonicalize().ok();
    let directory = data.as_deref().and_then(Path::parent);
    let table = directory.and_then(TableDirectory::parse);
    if table.is_some_and(|table| table.index.is_some()) {
        "INDEX"
    } else {
        "REGULAR"
    }
}

/// A key in the format of [`DumpOptions::keys`]: the text of its type, or its bytes after [`HEX_PREFIX`] if that text
/// is empty or has characters that cannot be printed.
pub(crate) fn key_argument(key_type: &CqlType, key: &[u8]) -> String {
    let text = key_type.describe(key);
    if text.is_empty() || text.chars().any(char::is_control) {
        format!("{HEX_PREFIX}{}", hex(key))
    } else {
        text
    }
}

/// True if the word is the key's bytes as [`key_argument`] shows them.
fn is_hex_of(word: &str, key: &[u8]) -> bool {
    word.strip_prefix(HEX_PREFIX)
        .is_some_and(|digits| digits.eq_ignore_ascii_case(&hex(key)))
}

/// Prefix of the bytes of a key.
const HEX_PREFIX: &str = "0x";

/// Selected keys, and which of them have been found.
#[derive(Debug)]
struct Selection<'a> {
    /// Keys still to be found; `None` if all are wanted.
    wanted: Option<Vec<&'a str>>,
    exclude: &'a [String],
}

impl<'a> Selection<'a> {
    fn new(options: &'a DumpOptions) -> Selection<'a> {
        let wanted = options.keys.iter().map(String::as_str);
        let wanted: Vec<&str> = wanted
            .filter(|key| !options.exclude.iter().any(|x| x == key))
            .collect();
        let wanted = (!options.keys.is_empty()).then_some(wanted);
        Selection {
            wanted,
            exclude: &options.exclude,
        }
    }

    /// True if all selected keys have been found: an SSTable contains each key once.
    fn is_exhausted(&self) -> bool {
        self.wanted.as_ref().is_some_and(Vec::is_empty)
    }

    fn takes(&mut self, key: &[u8], text: &str) -> bool {
        let names = |word: &str| word == text || is_hex_of(word, key);
        match &mut self.wanted {
            Some(wanted) => {
                let before = wanted.len();
                wanted.retain(|w| !names(w));
                wanted.len() < before
            }
            None => !self.exclude.iter().any(|x| names(x)),
        }
    }

    fn into_missing(self) -> Vec<String> {
        self.wanted
            .unwrap_or_default()
            .into_iter()
            .map(str::to_owned)
            .collect()
    }
}
