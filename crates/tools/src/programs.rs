//! Programs of Larder's distribution: `larder` executes the others for their verbs, and each can
//! describe its verbs for man pages and completions.

use std::env;
use std::ffi::OsString;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command as Process;

use clap::builder::PossibleValue;
use clap::{Arg, ArgAction, Args, Command};
use serde::{Deserialize, Serialize};

/// The only argument of a program that must describe itself.
const DESCRIBE: &str = "--describe";

/// A verb of another program.
#[derive(Clone, Debug, Args)]
#[command(disable_help_flag = true)]
pub struct ExternalVerbArgs {
    /// The verb's arguments; --help shows them.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

impl ExternalVerbArgs {
    /// Replaces this process by `program`, with the arguments `before` and then these.
    ///
    /// # Errors
    /// A program that cannot be executed. Otherwise it does not return.
    pub fn run(&self, program: &str, before: &[&str]) -> Result<(), String> {
        exec_program(program, before.iter().map(OsString::from).chain(self.arguments.clone()))
    }
}

/// Replaces this process by `program`, which is beside this one or in PATH.
///
/// # Errors
/// A program that cannot be executed. Otherwise it does not return.
pub fn exec_program(
    program: &str,
    arguments: impl IntoIterator<Item = OsString>,
) -> Result<(), String> {
    Err(unrunnable(program, &Process::new(place(program)).args(arguments).exec()))
}

/// The path of `program`: beside this one, else the bare name, for PATH.
fn place(program: &str) -> PathBuf {
    let own = env::current_exe().ok();
    let beside = own.and_then(|own| Some(own.parent()?.join(program)));
    beside.filter(|file| file.is_file()).unwrap_or_else(|| program.into())
}

fn unrunnable(program: &str, error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => format!(
            "larder: the program `{program}` is needed for this, and is neither beside `larder` \
             nor in PATH: packages have it, and `cargo build --release --package larder` builds it"
        ),
        _ => format!("larder: {program}: {error}"),
    }
}

/// A program's verbs, and the settings of larder.toml if the program reads it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ProgramDescription {
    /// The verbs.
    pub verb: VerbDescription,
    /// The settings, with their introduction.
    pub settings: SettingsReference,
}

/// The reference of larder.toml.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SettingsReference {
    /// Text before the tables that applies to all keys.
    pub introduction: String,
    /// The tables.
    pub sections: Vec<Section>,
}

/// A table of larder.toml.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Section {
    /// The name in the reference.
    pub title: String,
    /// The table's description.
    pub about: String,
    /// The table's keys.
    pub keys: Vec<Key>,
}

/// A key of a table.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Key {
    /// The key's name.
    pub name: String,
    /// Accepted values.
    pub takes: String,
    /// Default.
    pub default: String,
    /// The key's description.
    pub about: String,
}

/// A verb's description, as its help shows it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct VerbDescription {
    name: String,
    version: Option<String>,
    about: Option<String>,
    long_about: Option<String>,
    after_help: Option<String>,
    needs_verb: bool,
    verb_stands_alone: bool,
    arguments: Vec<Argument>,
    verbs: Vec<Self>,
}

/// An option or an argument.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Argument {
    id: String,
    long: Option<String>,
    short: Option<char>,
    help: Option<String>,
    long_help: Option<String>,
    heading: Option<String>,
    /// Names of the values; empty for a flag.
    values: Vec<String>,
    takes_value: bool,
    repeats: bool,
    is_required: bool,
    /// Accepted values with their meanings, if they are enumerated.
    choices: Vec<(String, Option<String>)>,
    defaults: Vec<String>,
}

impl VerbDescription {
    /// Describes `command`, without hidden arguments.
    pub fn of(command: &Command) -> Self {
        let text = |text: Option<&clap::builder::StyledStr>| text.map(ToString::to_string);
        let shown = command.get_arguments().filter(|own| !own.is_hide_set());
        let verbs = command.get_subcommands().filter(|own| !own.is_hide_set());
        Self {
            name: command.get_name().to_owned(),
            version: command.get_version().map(str::to_owned),
            about: text(command.get_about()),
            long_about: text(command.get_long_about()),
            after_help: text(command.get_after_help()),
            needs_verb: command.is_subcommand_required_set(),
            verb_stands_alone: command.is_args_conflicts_with_subcommands_set(),
            arguments: shown.map(Argument::of).collect(),
            verbs: verbs.map(Self::of).collect(),
        }
    }

    /// Makes a command with this help, for man pages only: its arguments are not parsed.
    pub fn command(&self) -> Command {
        let mut command = Command::new(self.name.clone())
            .subcommand_required(self.needs_verb)
            .args_conflicts_with_subcommands(self.verb_stands_alone)
            .args(self.arguments.iter().map(Argument::arg))
            .subcommands(self.verbs.iter().map(Self::command));
        if let Some(version) = &self.version {
            command = command.version(version.clone());
        }
        if let Some(text) = &self.about {
            command = command.about(text.clone());
        }
        if let Some(text) = &self.long_about {
            command = command.long_about(text.clone());
        }
        if let Some(text) = &self.after_help {
            command = command.after_help(text.clone());
        }
        command
    }

    /// Replaces the placeholders of other programs' verbs by their descriptions.
    pub fn merge_programs(&mut self, others: impl IntoIterator<Item = Self>) {
        for other in others {
            if let Some(own) = self.verbs.iter_mut().find(|own| own.name == other.name) {
                *own = other;
            }
        }
    }

    /// Renames the verb, and removes its version.
    #[must_use]
    pub fn named(self, name: &str) -> Self {
        Self { name: name.to_owned(), version: None, ..self }
    }

    /// Returns its subcommands.
    pub fn into_verbs(self) -> Vec<Self> {
        self.verbs
    }
}

impl Argument {
    fn of(arg: &Arg) -> Self {
        let texts = |texts: &[_]| texts.iter().map(ToString::to_string).collect();
        let action = arg.get_action();
        let choice = |value: &PossibleValue| {
            (value.get_name().to_owned(), value.get_help().map(ToString::to_string))
        };
        let choices = arg.get_possible_values();
        Self {
            id: arg.get_id().to_string(),
            long: arg.get_long().map(str::to_owned),
            short: arg.get_short(),
            help: arg.get_help().map(ToString::to_string),
            long_help: arg.get_long_help().map(ToString::to_string),
            heading: arg.get_help_heading().map(str::to_owned),
            values: arg.get_value_names().map(texts).unwrap_or_default(),
            takes_value: action.takes_values(),
            repeats: matches!(action, ArgAction::Append | ArgAction::Count),
            is_required: arg.is_required_set(),
            choices: match action.takes_values() && !arg.is_hide_possible_values_set() {
                true => choices.iter().filter(|value| !value.is_hide_set()).map(choice).collect(),
                false => Vec::new(),
            },
            defaults: match arg.is_hide_default_value_set() {
                true => Vec::new(),
                false => {
                    let defaults = arg.get_default_values().iter();
                    defaults.map(|value| value.to_string_lossy().into_owned()).collect()
                }
            },
        }
    }

    fn arg(&self) -> Arg {
        let mut arg = Arg::new(self.id.clone()).required(self.is_required);
        arg = match (self.takes_value, self.repeats) {
            (true, true) => arg.action(ArgAction::Append),
            (true, false) => arg.action(ArgAction::Set),
            (false, true) => arg.action(ArgAction::Count),
            (false, false) => arg.action(ArgAction::SetTrue),
        };
        if let Some(long) = &self.long {
            arg = arg.long(long.clone());
        }
        if let Some(short) = self.short {
            arg = arg.short(short);
        }
        if let Some(text) = &self.help {
            arg = arg.help(text.clone());
        }
        if let Some(text) = &self.long_help {
            arg = arg.long_help(text.clone());
        }
        if let Some(text) = &self.heading {
            arg = arg.help_heading(text.clone());
        }
        if !self.values.is_empty() {
            arg = arg.value_names(self.values.clone());
        }
        if !self.choices.is_empty() {
            let choices = self.choices.iter().map(|(name, help)| choice(name, help.as_deref()));
            arg = arg.value_parser(choices.collect::<Vec<_>>());
        }
        if self.takes_value && !self.defaults.is_empty() {
            arg = arg.default_values(self.defaults.clone());
        }
        arg
    }
}

fn choice(name: &str, help: Option<&str>) -> PossibleValue {
    let value = PossibleValue::new(name.to_owned());
    match help {
        Some(help) => value.help(help.to_owned()),
        None => value,
    }
}

/// Prints the program's description if that was asked for; false if the program should run.
pub fn print_description(command: &Command, settings: impl FnOnce() -> SettingsReference) -> bool {
    let mut arguments = env::args_os().skip(1);
    if arguments.next().is_none_or(|first| first != DESCRIBE) || arguments.next().is_some() {
        return false;
    }
    let program = ProgramDescription { verb: VerbDescription::of(command), settings: settings() };
    // Texts and lists always serialise.
    let text = serde_json::to_string(&program).unwrap_or_default();
    _ = std::io::stdout().write_all(text.as_bytes());
    true
}

/// Executes another program for its description.
///
/// # Errors
/// A program that is missing or does not describe itself.
pub fn read_description(program: &str) -> Result<ProgramDescription, String> {
    let output = Process::new(place(program)).arg(DESCRIBE).output();
    let output = output.map_err(|error| unrunnable(program, &error))?;
    serde_json::from_slice(&output.stdout).map_err(|_| {
        format!("larder: {program} is of another version: it does not describe itself")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Command {
        let arg = Arg::new("to").long("to").short('t').help("Where.").value_name("PLACE");
        Command::new("larder").version("1.2").about("Sample.").arg(arg).subcommand(
            Command::new("top").about("Most.").after_help("Keys: q").args([
                Arg::new("by").long("by").default_value("url").value_parser(["url", "status"]),
                Arg::new("once").long("once").action(ArgAction::SetTrue).help_heading("Ways"),
                Arg::new("file").required(true),
                Arg::new("secret").long("secret").hide(true),
            ]),
        )
    }

    fn help(command: &Command) -> String {
        let mut built = command.clone();
        built.build();
        let own = built.render_long_help().to_string();
        let verbs = built.get_subcommands_mut().map(|verb| verb.render_long_help().to_string());
        own + &verbs.collect::<String>()
    }

    #[test]
    fn a_description_has_all_that_help_has() {
        let text = serde_json::to_string(&VerbDescription::of(&sample())).expect("texts");
        let verb: VerbDescription = serde_json::from_str(&text).expect("a verb");
        assert_eq!(help(&verb.command()), help(&sample()));
        assert!(!text.contains("secret"));
    }

    #[test]
    fn verbs_of_other_programs_take_the_places_that_stand_for_them() {
        let mut verb = VerbDescription::of(&Command::new("larder").subcommand(Command::new("top")));
        let other = VerbDescription::of(&sample());
        verb.merge_programs(other.clone().into_verbs());
        verb.merge_programs([other.named("none")]);
        let command = verb.command();
        let verbs: Vec<_> = command.get_subcommands().collect();
        assert_eq!(verbs.len(), 1, "no verb is added");
        assert!(verbs[0].get_arguments().any(|own| own.get_long() == Some("by")));
    }

    #[test]
    fn a_program_that_is_not_there_is_named_with_its_ways_here() {
        let said = exec_program("larder-no-such", []).expect_err("it is not there");
        assert!(said.contains("`larder-no-such`") && said.contains("cargo build"), "{said}");
        assert!(read_description("larder-no-such").is_err());
    }
}
