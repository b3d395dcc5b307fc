//! TOC.txt: the list of an SSTable's components, one per line.
//!
//! Source: `TOCComponent`.

use crate::component::Component;
use crate::error::{Error, Result};

/// The components that an SSTable says it has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Toc {
    /// Names as found, in file order.
    pub names: Vec<String>,
}

impl Toc {
    /// A list of known components.
    pub fn of(components: impl IntoIterator<Item = Component>) -> Toc {
        Toc {
            names: components
                .into_iter()
                .map(|c| c.file_suffix().to_owned())
                .collect(),
        }
    }

    /// Parses a TOC; blank lines are ignored.
    ///
    /// # Errors
    /// Corruption if a byte is none of a component's name, or a line is no file name.
    pub fn parse(bytes: &[u8]) -> Result<Toc> {
        let is_odd = |byte: &u8| !byte.is_ascii_graphic() && !b" \r\n".contains(byte);
        let odd = bytes.iter().position(is_odd);
        let text = match (odd, std::str::from_utf8(bytes)) {
            (None, Ok(text)) => text,
            _ => {
                let at = odd.unwrap_or(0);
                return Err(Error::corrupt(
                    "toc",
                    at as u64,
                    "names of components in ASCII, one a line",
                    bytes
                        .get(at)
                        .map_or(String::new(), |b| format!("byte {b:02x}")),
                ));
            }
        };
        let mut names = Vec::new();
        let mut offset = 0;
        for line in text.split('\n') {
            let name = line.trim();
            if name.contains(['/', '\0']) || name == ".." {
                return Err(Error::corrupt("toc", offset, "a component's name", name));
            }
            if !name.is_empty() {
                names.push(name.to_owned());
            }
            offset += line.len() as u64 + 1;
        }
        Ok(Toc { names })
    }

    /// True if the component is listed.
    pub fn contains(&self, component: Component) -> bool {
        self.names
            .iter()
            .any(|name| name == component.file_suffix())
    }

    /// The listed components that this project knows.
    pub fn components(&self) -> impl Iterator<Item = Component> {
        self.names
            .iter()
            .filter_map(|name| Component::from_file_suffix(name))
    }

    /// The listed names that this project does not know, such as secondary index parts.
    pub fn unknown(&self) -> impl Iterator<Item = &str> {
        self.names
            .iter()
            .map(String::as_str)
            .filter(|name| Component::from_file_suffix(name).is_none())
    }

    /// Appends the sorted list, each line ended by `\n`, as Cassandra writes it. `TOC.txt` lists
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
    fn refuses_other_bytes() {
        assert!(Toc::parse(b"Data.db\n\xff").is_err());
        // A line feed with a flipped bit.
        let error = Toc::parse(b"Data.db\nTOC.txt\x0b").unwrap_err();
        assert!(error.to_string().contains("offset 15"), "{error}");
        let error = Toc::parse(b"Data.db\n../../etc/passwd\n")
            .unwrap_err()
            .to_string();
        assert!(error.contains("offset 8"), "{error}");
    }
}
