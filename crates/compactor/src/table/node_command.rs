//! The commands that bring outputs back to a node, ready to be run there.

use serde::Serialize;

use super::output_layout::OutputLayout;

/// A command of Cassandra's, or of this program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct NodeCommand {
    /// `swap`, `import` or `verify`.
    pub purpose: &'static str,
    /// The program and its arguments. Bytes of paths that are not UTF-8 are replaced.
    pub argv: Vec<String>,
}

/// Commands that bring outputs to a node.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct NextSteps {
    /// The commands; empty if nothing was replaced or the table is not known.
    pub commands: Vec<NodeCommand>,
    /// Reason why outputs cannot be imported from their directory.
    #[serde(skip)]
    pub hint: Option<String>,
}

/// Levels of outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Levels {
    /// All are in level 0, or a node may put them there.
    Zero,
    /// Some are in a higher level, which an import is to keep.
    Kept,
}

impl NextSteps {
    /// `None` if nothing is left of the inputs: a node can do without them.
    pub(crate) fn new(layout: &OutputLayout, levels: Option<Levels>) -> NextSteps {
        let Some(levels) = levels else {
            return NextSteps::swap(layout);
        };
        let hint = layout.table().is_none().then(|| {
            format!(
                "to import it, name its table with --schema: Cassandra 5.0 and later import only from a \
                 directory .../KEYSPACE/TABLE, which {} is not",
                layout.directory().display()
            )
        });
        NextSteps {
            commands: NodeCommand::for_outputs(layout, levels),
            hint,
        }
    }

    /// The swap alone: an import would leave the inputs in the table.
    pub(crate) fn swap(layout: &OutputLayout) -> NextSteps {
        NextSteps {
            commands: Vec::from_iter(NodeCommand::swap(layout)),
            hint: None,
        }
    }
}

impl NodeCommand {
    /// Returns the commands that bring outputs with this layout to a node. They include an import and its
    /// verification if the table is known and a node imports from the directory.
    pub fn for_outputs(layout: &OutputLayout, levels: Levels) -> Vec<NodeCommand> {
        let mut commands = Vec::from_iter(NodeCommand::swap(layout));
        commands.extend(NodeCommand::import(layout, levels).into_iter().flatten());
        commands
    }

    fn import(layout: &OutputLayout, levels: Levels) -> Option<[NodeCommand; 2]> {
        let table = layout.table()?;
        // The node has another working directory.
        let directory = std::path::absolute(layout.directory()).ok()?;
        if !table.is_directory(&directory) {
            return None;
        }
        let name = [table.keyspace.as_str(), table.table.as_str()];
        let directory = directory.to_string_lossy();
        let command = |purpose, program: &[&str], last: &[&str]| NodeCommand {
            purpose,
            argv: [program, &name, last]
                .concat()
                .into_iter()
                .map(str::to_owned)
                .collect(),
        };
        let import = ["nodetool", "import", "--keep-repaired", "--extended-verify"];
        let keep_level: &[&str] = match levels {
            Levels::Zero => &[],
            Levels::Kept => &["--keep-level"],
        };
        Some([
            command("import", &[&import, keep_level].concat(), &[&directory]),
            // Without -f it does nothing (CASSANDRA-17017), in 4.1 to 6.0.
            command("verify", &["sstableverify", "-f", "-e"], &[]),
        ])
    }

    /// For outputs of inputs that are in a node's own directory: an import would leave these there.
    fn swap(layout: &OutputLayout) -> Option<NodeCommand> {
        let into = layout.inputs_in()?.to_string_lossy().into_owned();
        let output = layout.top().canonicalize();
        let output = output.or_else(|_| std::path::absolute(layout.top())).ok()?;
        let output = output.to_string_lossy();
        let output = output.trim_end_matches('/');
        let inputs_to = format!("{output}-inputs");
        let argv = [
            "compactor",
            "swap",
            output,
            "--into",
            &into,
            "--inputs-to",
            &inputs_to,
        ];
        Some(NodeCommand {
            purpose: "swap",
            argv: argv.map(str::to_owned).to_vec(),
        })
    }

    /// As a line for a shell.
    pub fn shell_line(&self) -> String {
        let words: Vec<String> = self.argv.iter().map(|word| quoted(word)).collect();
        words.join(" ")
    }
}

/// A word that a shell takes for itself.
pub(super) fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_./:=@%+,-".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::TableName;

    fn commands(top: &str, flat: bool) -> Vec<NodeCommand> {
        let table = TableName {
            keyspace: "ks".to_owned(),
            table: "T_1".to_owned(),
        };
        NodeCommand::for_outputs(&OutputLayout::new(top, Some(table), flat), Levels::Zero)
    }

    #[test]
    fn lines_are_what_a_shell_takes_apart_again() {
        for top in ["/scratch/out", "/a b/it's $HOME", "/ü/\"x\"\n"] {
            let [import, verify] = &commands(top, false)[..] else {
                panic!();
            };
            let directory = format!("{top}/ks/T_1");
            assert_eq!(import.argv[..2], ["nodetool", "import"]);
            assert_eq!(import.argv[4..], ["ks", "T_1", &directory]);
            assert_eq!(verify.argv, ["sstableverify", "-f", "-e", "ks", "T_1"]);
            let script = format!("printf '%s\\0' {}", import.shell_line());
            let out = std::process::Command::new("sh")
                .args(["-c", &script])
                .output();
            let words = String::from_utf8(out.unwrap().stdout).unwrap();
            let words: Vec<&str> = words.split_terminator('\0').collect();
            assert_eq!(words, import.argv, "{top}");
        }
        assert_eq!(
            commands("/scratch/out", false)[0].shell_line(),
            "nodetool import --keep-repaired --extended-verify ks T_1 /scratch/out/ks/T_1"
        );
    }

    #[test]
    fn levels_are_kept() {
        let table = TableName {
            keyspace: "ks".to_owned(),
            table: "t".to_owned(),
        };
        let layout = OutputLayout::new("/out", Some(table), false);
        let commands = NodeCommand::for_outputs(&layout, Levels::Kept);
        assert_eq!(
            commands[0].shell_line(),
            "nodetool import --keep-repaired --extended-verify --keep-level ks t /out/ks/t"
        );
    }

    #[test]
    fn where_a_node_would_find_nothing_there_is_no_command() {
        assert_eq!(commands("/scratch/out", true), []);
        assert_eq!(commands("/scratch/ks/T_1", true).len(), 2);
        let unknown = OutputLayout::new("/scratch/out", None, false);
        assert_eq!(NodeCommand::for_outputs(&unknown, Levels::Zero), []);
    }
}
