//! Parsing, with complaints that name the variable a wrong value came from: nobody finds a mistake
//! in a flag that was never typed.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue};
use clap::{Arg, Command, CommandFactory, Error, Parser};

use super::Arguments;
use crate::settings::Environment;

/// The command line; the error is what clap says, with the variable's name.
pub(crate) fn parse(
    words: impl IntoIterator<Item = OsString>,
    environment: &Environment,
) -> Result<Arguments, (Error, Option<String>)> {
    let words: Vec<OsString> = words.into_iter().collect();
    Arguments::try_parse_from(&words).map_err(|error| {
        let from = variable(&error, &words, environment);
        (error, from.map(|name| format!("The value comes from the environment variable {name}.")))
    })
}

/// The variable that the complaint is about, if no flag was typed.
fn variable(error: &Error, words: &[OsString], environment: &Environment) -> Option<String> {
    let Some(ContextValue::String(about)) = error.get(ContextKind::InvalidArg) else { return None };
    let flag = about.split_whitespace().next()?;
    let is_typed = |word: &OsString| word.to_str().is_some_and(|word| word.starts_with(flag));
    if words.iter().any(is_typed) {
        return None;
    }
    let name = variable_of(&Arguments::command(), flag.strip_prefix("--")?)?;
    environment.is_set(&name).then_some(name)
}

fn variable_of(command: &Command, long: &str) -> Option<String> {
    let own = command.get_arguments().find(|argument| argument.get_long() == Some(long));
    let named = own.and_then(Arg::get_env).and_then(|name| name.to_str()).map(str::to_owned);
    named.or_else(|| command.get_subcommands().find_map(|inner| variable_of(inner, long)))
}
