//! Strategies to simulate, from options of the command.

use compactor::Error;
use compactor_strategy::options::Options;
use compactor_strategy::release::Release;
use compactor_strategy::{CompactionParams, params::CLASSES};

use crate::strategy_args::{NAMES, class_of, converted, name_and_value};

/// A requested strategy: its class, and options by their names in Cassandra.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) class: &'static str,
    pub(super) options: Options,
}

/// Parses a strategy with options: `leveled:fanout_size=4:sstable_size_in_mb=160`.
pub(super) fn choice(text: &str) -> Result<Choice, String> {
    let mut parts = text.split(':');
    let name = parts.next().unwrap_or_default();
    let class = class_of(name).ok_or_else(|| {
        format!(
            "{name:?} is no strategy; write {} or a class of Cassandra",
            NAMES.join(", ")
        )
    })?;
    let mut choice = Choice {
        class,
        options: Options::new(),
    };
    for part in parts {
        add(&mut choice, [name_and_value(part)?]).map_err(|error| error.to_string())?;
    }
    Ok(choice)
}

/// Parses strategies with commas between them. Values such as `T8,T4` may have commas, too.
pub(super) fn choices(text: &str) -> Result<Choices, String> {
    let mut texts: Vec<String> = Vec::new();
    for part in text.split(',') {
        let name = part.split(':').next().unwrap_or(part);
        match texts.last_mut() {
            Some(last) if class_of(name).is_none() && last.contains('=') => {
                last.push(',');
                last.push_str(part);
            }
            _ => texts.push(part.to_owned()),
        }
    }
    let choices: Result<Vec<Choice>, String> = texts.iter().map(|text| choice(text)).collect();
    Ok(Choices(choices?))
}

/// Strategies to compare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Choices(pub(super) Vec<Choice>);

/// Sets an option that several strategies have, each by a name of its own.
///
/// # Errors
/// A value that cannot be converted, an option that the strategy does not have, or one that is set already.
pub(super) fn set(choice: &mut Choice, name: &str, value: &str) -> Result<(), Error> {
    add(choice, converted(choice.class, name, value)?)
}

/// Adds options by Cassandra's names.
///
/// # Errors
/// An option that is given twice.
pub(super) fn add(
    choice: &mut Choice,
    options: impl IntoIterator<Item = (String, String)>,
) -> Result<(), Error> {
    for (name, value) in options {
        if let Some(other) = choice.options.get(&name) {
            return Err(Error::invalid(format!(
                "{name} is set twice, to {other} and {value}; name it once"
            )));
        }
        choice.options.insert(name, value);
    }
    Ok(())
}

/// Whether a strategy has an option of the command.
pub(super) fn has(choice: &Choice, name: &str) -> bool {
    let [size_tiered, leveled, time_window, unified, level_count] = CLASSES;
    let classes: &[&str] = match name {
        "sstable-size" => &[leveled, unified],
        "fanout-size" => &[leveled, level_count],
        "min-threshold" | "max-threshold" => &[size_tiered, leveled, time_window, level_count],
        "scaling-parameters" => &[unified],
        "window" => &[time_window],
        "levels" => &[level_count],
        _ => return true,
    };
    classes.contains(&choice.class)
}

/// Validates a choice as Cassandra does.
///
/// # Errors
/// Options that are unknown, out of range or contradict each other, with Cassandra's message.
pub(super) fn params(choice: &Choice, release: Release) -> Result<CompactionParams, Error> {
    CompactionParams::from_options(choice.class, &choice.options, release)
        .map_err(|error| Error::invalid(error.to_string()))
}

/// Name of a choice in a report: as in the command, with its options.
pub(super) fn name(choice: &Choice) -> String {
    let mut known = NAMES.iter().zip(CLASSES);
    let short = known.find(|(_, class)| *class == choice.class);
    let mut name = short.map_or(choice.class, |(short, _)| short).to_owned();
    for (option, value) in &choice.options {
        name.push_str(&format!(" {option}={value}"));
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strategies_have_short_names_and_options() {
        let names = |text| -> Vec<String> { choices(text).unwrap().0.iter().map(name).collect() };
        assert_eq!(
            names("leveled:fanout_size=4,unified:scaling_parameters=T8,T4,size-tiered"),
            [
                "leveled fanout_size=4",
                "unified scaling_parameters=T8,T4",
                "size-tiered"
            ]
        );
        assert_eq!(
            names("org.apache.cassandra.db.compaction.LeveledCompactionStrategy"),
            ["leveled"]
        );
        for bad in ["", "leveled,", "level", "leveled,T4", "leveled:fanout_size"] {
            assert!(choices(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn options_are_converted_to_cassandras() {
        let with = |class: &str, option, value| {
            let mut choice = choice(class).unwrap();
            set(&mut choice, option, value).map(|()| name(&choice))
        };
        let found = |class, option, value| with(class, option, value).unwrap();
        assert_eq!(
            found("leveled", "sstable-size", "160MiB"),
            "leveled sstable_size_in_mb=160"
        );
        assert_eq!(
            found("unified", "sstable-size", "1GiB"),
            "unified target_sstable_size=1073741824B"
        );
        assert_eq!(
            found("unified", "min-sstable-size", "50MiB"),
            "unified min_sstable_size=52428800B"
        );
        assert_eq!(
            found("size-tiered", "min-sstable-size", "50MiB"),
            "size-tiered min_sstable_size=52428800"
        );
        assert_eq!(
            found("time-window", "window", "36h"),
            "time-window compaction_window_size=36 compaction_window_unit=HOURS"
        );
        assert_eq!(
            found("level-count", "levels", "3"),
            "level-count level_count=3"
        );
        let refused = |class, option, value| with(class, option, value).unwrap_err().to_string();
        assert!(refused("leveled", "sstable-size", "1.5MB").contains("sstable_size_in_mb"));
        assert!(refused("time-window", "window", "90s").contains("number of minutes"));
        assert!(refused("leveled", "window", "1d").contains("no option of Leveled"));
    }
}
