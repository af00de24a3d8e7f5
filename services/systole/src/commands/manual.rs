//! `systole completions` and `systole man`: what the command line says of itself, for shells and `man`.

use std::fs;
use std::io;
use std::path::Path;

use clap::CommandFactory;
use clap_complete::Shell;

use super::print;
use crate::arguments::Arguments;
use crate::failure::{Exit, Failure};

/// Prints a completion script.
pub(crate) fn completions(shell: Shell) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "systole", &mut script);
    print(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}

/// Writes a page for each command that people use.
pub(crate) fn man(dir: &Path) -> Result<Exit, Failure> {
    let wrong = |error: io::Error| Failure::input(format!("{}: {error}", dir.display()));
    fs::create_dir_all(dir).map_err(wrong)?;
    let mut root = Arguments::command();
    root.build();
    let pages = write(dir, &root, "systole").map_err(wrong)?;
    print(&format!("{pages} pages in {}\n", dir.display()))?;
    Ok(Exit::Done)
}

/// The page of a command and those of its subcommands; answers how many.
fn write(dir: &Path, command: &clap::Command, name: &str) -> io::Result<usize> {
    let page = command.clone().display_name(name);
    let mut text = Vec::new();
    clap_mangen::Man::new(page).render(&mut text)?;
    fs::write(dir.join(format!("{name}.1")), text)?;
    let mut pages = 1_usize;
    let shown = command.get_subcommands().filter(|sub| !sub.is_hide_set());
    for sub in shown.filter(|sub| sub.get_name() != "help") {
        let name = format!("{name}-{}", sub.get_name());
        pages = pages.saturating_add(write(dir, sub, &name)?);
    }
    Ok(pages)
}
