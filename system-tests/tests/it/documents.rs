//! The examples of the documents, as they stand there: files are checked, commands are run.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;

use crate::agents::dangerous;
use crate::home::{Ended, Home, Running, finish, program};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The blocks of one language.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let fence = format!("```{language}\n");
    let blocks = page.split(fence.as_str()).skip(1);
    blocks.map(|block| block.split("```").next().unwrap().to_owned()).collect()
}

fn pages() -> Vec<PathBuf> {
    let mut pages = vec![root().join("README.md")];
    for folder in ["docs", "agents/ops", "agents/code"] {
        let entries = fs::read_dir(root().join(folder)).unwrap();
        let files = entries.map(|entry| entry.unwrap().path());
        pages.extend(files.filter(|path| path.extension().is_some_and(|ext| ext == "md")));
    }
    pages
}

fn make_executable(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// What an example names and a page cannot show: programs, and the tools of an agent.
fn stand_ins(home: &Home, example: &str) {
    for part in example.split("\"./").skip(1) {
        let name = part.split('"').next().unwrap();
        make_executable(&home.path().join(name), "#!/bin/sh\n");
    }
    if example.contains("./shop.yaml") {
        let shop = root().join("crates/definitions/fixtures/shop.yaml");
        fs::copy(shop, home.path().join("shop.yaml")).unwrap();
    }
    if example.contains("./notes/server.js") {
        make_executable(&home.path().join("notes/server.js"), "");
    }
    let names = example.lines().find_map(|line| line.strip_prefix("tools: ["));
    let names = names.map(|names| names.trim_end_matches(']')).unwrap_or_default();
    let tools = names.split(", ").filter(|name| !name.is_empty()).map(|name| {
        format!("  - name: {name}\n    description: Does it.\n    run: {{ command: [true] }}\n")
    });
    home.write("tools.yaml", &format!("tools:\n{}", tools.collect::<String>()));
}

#[test]
fn every_yaml_example_passes_the_check() {
    let mut checked = 0;
    for page in pages() {
        for (index, example) in
            blocks(&fs::read_to_string(&page).unwrap(), "yaml").iter().enumerate()
        {
            // The settings of a node are none of the files that the check knows.
            if example.starts_with("nats:") {
                continue;
            }
            let home = Home::new();
            stand_ins(&home, example);
            home.write("example.yaml", example);
            let ended = home.run(["tools", "check", "example.yaml"]);
            let place = format!("{} example {index}", page.display());
            assert_eq!(ended.code, Some(0), "{place}:\n{}", ended.out);
            checked += 1;
        }
    }
    assert!(checked >= 10, "{checked} examples");
}

/// Runs the lines of a document in a shell in which `systole` is the program.
fn typed(home: &Home, lines: &str) -> Ended {
    let bin = home.path().join("bin-of-systole");
    fs::create_dir_all(&bin).unwrap();
    symlink(program(), bin.join("systole")).unwrap();
    let mut shell = Command::new("sh");
    shell.args(["-e", "-c", lines]).current_dir(home.path()).env_clear();
    shell.env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", bin.display()));
    shell.env("SYSTOLE_REHEARSAL_PACE", "0");
    finish(shell)
}

#[test]
fn the_agent_of_the_readme_works_as_it_is_written() {
    let home = Home::new();
    let page = fs::read_to_string(root().join("README.md")).unwrap();
    let (yaml, shell) = (blocks(&page, "yaml"), blocks(&page, "sh"));
    let named = |name: &str| {
        let mut all = yaml.iter().chain(&shell);
        all.find(|block| block.contains(&format!("# {name}"))).unwrap().clone()
    };
    for name in ["agent.yaml", "tools.yaml", "rehearsal.yaml", "lookup.sh"] {
        home.write(name, &named(name));
    }
    let lines = shell.iter().find(|block| block.contains("systole run")).unwrap();
    let ended = typed(&home, lines);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.out.contains("1 file, 1 tool: 0 wrong, 0 pieces of advice"), "{}", ended.out);
    assert!(ended.out.contains("Good morning to London!"), "{}", ended.out);
}

fn copy(from: &Path, to: &Path) {
    if from.is_dir() {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            if entry.file_name() != "work" {
                copy(&entry.path(), &to.join(entry.file_name()));
            }
        }
    } else {
        fs::copy(from, to).unwrap();
    }
}

#[test]
fn the_first_commands_of_the_command_line_page_work_in_a_clone() {
    let home = Home::new();
    copy(&root().join("agents"), &home.path().join("agents"));
    let page = fs::read_to_string(root().join("docs/cli.md")).unwrap();
    let ended = typed(&home, &blocks(&page, "sh")[0]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(home.read("agents/code/work/src/components/Button.tsx").contains("interface"));
    assert!(ended.out.contains("Card.tsx"), "{}", ended.out);
    assert_eq!(ended.out.matches("✓ answered").count(), 5, "{}", ended.out);
}

#[test]
fn every_further_block_of_the_command_line_page_can_be_typed() {
    let page = fs::read_to_string(root().join("docs/cli.md")).unwrap();
    let blocks = blocks(&page, "sh");
    for block in blocks.iter().skip(1) {
        let ended = typed(&Home::new(), block);
        assert_eq!(ended.code, Some(0), "{block}{ended:?}");
    }
    let typed: String = blocks.concat();
    for command in [
        "run",
        "show",
        "threads",
        "new agent",
        "agents check",
        "agents list",
        "tools check",
        "tools list",
        "rehearse",
        "freeze",
        "thaw",
        "completions",
        "man",
        "doctor",
        "bench",
    ] {
        assert!(typed.contains(&format!("systole {command}")), "{command} has no example");
    }
}

/// The commands of a section whose lines are for another terminal than the run's.
fn commands_of(section: &str) -> Vec<Vec<String>> {
    let page = fs::read_to_string(root().join("docs/cli.md")).unwrap();
    let (_, section) = page.split_once(&format!("\n## {section}\n")).unwrap();
    let lines = section.split("```").nth(1).unwrap().trim().lines();
    lines.map(|line| words(line.split('#').next().unwrap())).collect()
}

/// The words behind the program's name, as a shell would part them.
fn words(line: &str) -> Vec<String> {
    let parts = line.trim().split('"').enumerate();
    let words = parts.flat_map(|(index, part)| match index % 2 {
        0 => part.split_whitespace().map(str::to_owned).collect(),
        _ => vec![part.to_owned()],
    });
    words.skip(1).collect()
}

/// An agent whose one call waits for a person, under a `dev`.
fn waiting(home: &Home) -> (Running, Running) {
    dangerous(home);
    let mut dev = home.start(["dev", "agent.yaml"]);
    dev.until_printed("dev is up");
    let mut run = home.start(["run", "agent.yaml", "go", "--json"]);
    run.until_printed("approval_asked");
    (dev, run)
}

#[test]
fn the_words_of_a_person_on_the_command_line_page_can_be_typed() {
    let commands = commands_of("threads, approve");
    assert_eq!(commands.len(), 3, "{commands:?}");
    let home = Home::new();
    let (dev, run) = waiting(&home);
    let listed = home.run(&commands[0]);
    assert_eq!(listed.out.matches("waiting").count(), 1, "{listed:?}");
    let approved = home.run(&commands[1]);
    assert!(approved.out.starts_with("approved: probe ("), "{approved:?}");
    run.end().answer();
    assert_eq!(home.read("effects"), "done\n");
    let mut run = home.start(["run", "agent.yaml", "go", "--json", "--new"]);
    run.until_printed("approval_asked");
    let thread = home.run(["threads", "--json", "--limit", "1"]).last()["thread"].clone();
    let thread = thread.as_str().unwrap();
    let mut denial = commands[2].clone();
    assert_eq!(denial[1], "9KZ2", "the end of an id stands there");
    denial[1] = thread[thread.len() - 4..].to_owned();
    assert_eq!(home.run(&denial).code, Some(0));
    let content = run.end().observation_of("probe")["content"].clone();
    assert!(content.as_str().unwrap().contains("not on a Friday"), "{content}");
    dev.kill();
}

#[test]
fn the_cancel_of_the_command_line_page_can_be_typed() {
    let home = Home::new();
    let (dev, run) = waiting(&home);
    let cancelled = home.run(&commands_of("cancel")[0]);
    assert_eq!(cancelled.code, Some(0), "{cancelled:?}");
    assert_eq!(run.end().code, Some(3));
    assert_eq!(home.read("effects"), "");
    dev.kill();
}

/// Two terminals, so the lines cannot be typed one after another.
#[test]
fn the_dev_of_the_command_line_page_runs_what_the_other_terminal_asks_for() {
    let home = Home::new();
    copy(&root().join("agents"), &home.path().join("agents"));
    let page = fs::read_to_string(root().join("docs/cli.md")).unwrap();
    let (_, section) = page.split_once("## dev").unwrap();
    let lines: Vec<&str> = section.split("```").nth(1).unwrap().trim().lines().collect();
    let words = |line: &str| -> Vec<String> {
        let line = line.split('#').next().unwrap().trim();
        line.split(' ').skip(1).map(|word| word.trim_matches('"').to_owned()).collect()
    };
    let mut dev = home.start(words(lines[0]));
    dev.until_printed("dev is up");
    let run = home.run(words(lines[2]));
    assert!(run.out.contains("in dev (pid "), "{run:?}");
    let listed = home.run(["threads"]);
    assert!(listed.out.contains("ops"), "{listed:?}");
    dev.signal(Signal::INT);
    assert_eq!(dev.end().code, Some(0));
}
