//! TOC.txt: the list of an SSTable's components, one per line.
//!
//! Source: `TOCComponent`.

use crate::component::Component;
use crate::error::{Error, Result};

/// The components that an SSTable lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Toc {
    /// Names as found, in file order.
    pub names: Vec<String>,
}

/// Maximum length of the file, bytes: a thousand secondary indexes have some 20 lines each.
const MAX_LEN: u64 = 1 << 20;

impl Toc {
    /// Creates a list of known components.
    pub fn of(components: impl IntoIterator<Item = Component>) -> Toc {
        Toc {
            names: components
                .into_iter()
                .map(|c| c.file_suffix().to_owned())
                .collect(),
        }
    }

    /// Checks the length of the file before it is read.
    ///
    /// # Errors
    /// Corruption if it is longer than any list of components.
    pub fn check_len(len: u64) -> Result<()> {
        if len > MAX_LEN {
            let expected = format!("at most {MAX_LEN} bytes");
            return Err(Error::corrupt("toc", 0, expected, format!("{len} bytes")));
        }
        Ok(())
    }

    /// Parses a TOC. Blank lines are ignored; unknown names are kept.
    ///
    /// # Errors
    /// Corruption if it is not UTF-8: Cassandra does not open the SSTable then
    /// (`CompressionInfoComponent.verifyCompressionInfoExistenceIfApplicable`).
    pub fn parse(bytes: &[u8]) -> Result<Toc> {
        let text = std::str::from_utf8(bytes).map_err(|e| {
            let at = e.valid_up_to();
            let found = bytes.get(at).map(|b| format!("byte {b:02x}"));
            let expected = "names of components in UTF-8, one per line";
            Error::corrupt("toc", at as u64, expected, found.unwrap_or_default())
        })?;
        let names = text.split(['\n', '\r']).map(str::trim);
        let names = names.filter(|name| !name.is_empty()).map(str::to_owned);
        Ok(Toc {
            names: names.collect(),
        })
    }

    /// Whether the component is listed.
    pub fn contains(&self, component: Component) -> bool {
        self.names
            .iter()
            .any(|name| name == component.file_suffix())
    }

    /// Listed components known to this project.
    pub fn components(&self) -> impl Iterator<Item = Component> {
        self.names
            .iter()
            .filter_map(|name| Component::from_file_suffix(name))
    }

    /// Listed names unknown to this project, such as parts of secondary indexes.
    pub fn unknown(&self) -> impl Iterator<Item = &str> {
        self.names
            .iter()
            .map(String::as_str)
            .filter(|name| Component::from_file_suffix(name).is_none())
    }

    /// Appends the sorted list, with `\n` after each line, as Cassandra writes it. It includes `TOC.txt`
    /// itself.
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut names: Vec<&str> = self.names.iter().map(String::as_str).collect();
        names.push(Component::Toc.file_suffix());
        names.sort_unstable();
        names.dedup();
        for name in names {
            out.extend_from_slice(name.as_bytes());
            out.push(b'\n');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorted_and_lists_itself() {
        let mut out = Vec::new();
        Toc::of([
            Component::Statistics,
            Component::Data,
            Component::Filter,
            Component::Crc,
        ])
        .write(&mut out);
        assert_eq!(out, b"CRC.db\nData.db\nFilter.db\nStatistics.db\nTOC.txt\n");
        let toc = Toc::parse(&out).unwrap();
        assert!(toc.contains(Component::Toc) && !toc.contains(Component::CompressionInfo));
        assert_eq!(toc.components().count(), 5);
    }

    #[test]
    fn tolerates_blank_lines_and_other_components() {
        let toc = Toc::parse(b"Data.db\r\n\n SAI+ba+Meta.db \nTOC.txt").unwrap();
        assert_eq!(toc.names, ["Data.db", "SAI+ba+Meta.db", "TOC.txt"]);
        assert_eq!(toc.unknown().collect::<Vec<_>>(), ["SAI+ba+Meta.db"]);
    }

    #[test]
    fn refuses_tables_of_contents_that_cassandra_does_not_open() {
        Toc::check_len(MAX_LEN).unwrap();
        Toc::check_len(MAX_LEN + 1).unwrap_err();
        let error = Toc::parse(b"Data.db\n\xff").unwrap_err().to_string();
        assert!(error.contains("offset 8"), "{error}");
        // A bit flipped in a name.
        let toc = Toc::parse(b"Data.db\nDig\x07st.crc32\n").unwrap();
        assert_eq!(toc.unknown().collect::<Vec<_>>(), ["Dig\x07st.crc32"]);
    }
}
