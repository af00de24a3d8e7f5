//! No path leads out of the root.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use definitions::run::Builtin;
use proptest::prelude::*;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::json;
use tempfile::{TempDir, tempdir};
use worker::executor::Ended;

use crate::support::*;

const SECRET: &str = "the-secret-outside";

/// `outside/` with a secret beside `root/` with ways out, ways around, and dead ends.
fn world() -> TempDir {
    let world = tempdir().unwrap();
    let (outside, root) = (world.path().join("outside"), world.path().join("root"));
    fs::create_dir_all(outside.join("dir")).unwrap();
    fs::write(outside.join("secret"), SECRET).unwrap();
    fs::create_dir_all(root.join("dir/sub")).unwrap();
    fs::write(root.join("file"), "inside").unwrap();
    fs::write(root.join("dir/file"), "inside").unwrap();
    let links = [
        ("out", "../outside"),
        ("out_absolute", outside.to_str().unwrap()),
        ("out_file", "../outside/secret"),
        ("dir/up", "../.."),
        ("new_outside", "../outside/created"),
        ("in", "dir"),
        ("dead", "nowhere"),
        ("loop", "loop"),
    ];
    for (name, target) in links {
        symlink(target, root.join(name)).unwrap();
    }
    world
}

/// Every file outside the root with its content, every folder and link with none.
fn outside(world: &Path) -> BTreeMap<PathBuf, Option<String>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![world.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path == world.join("root") {
                continue;
            }
            let kind = path.symlink_metadata().unwrap().file_type();
            let content = kind.is_file().then(|| fs::read_to_string(&path).unwrap());
            if kind.is_dir() {
                folders.push(path.clone());
            }
            found.insert(path, content);
        }
    }
    found
}

async fn failure(root: &Path, which: Builtin, path: &str) -> String {
    let arguments = json!({"path": path, "content": "x", "old": "s", "new": "t", "pattern": "s"});
    let ended = run(&builtin(root, which), arguments).await;
    let Ended::Failed { why, .. } = ended else { panic!("{which:?} {path}: {ended:?}") };
    why
}

const FILE_TOOLS: [Builtin; 5] = [
    Builtin::ListFiles,
    Builtin::ReadFile,
    Builtin::SearchFiles,
    Builtin::WriteFile,
    Builtin::EditFile,
];

#[tokio::test]
async fn ways_out_are_refused_by_every_tool_with_the_rule_and_the_fix() {
    let world = world();
    let root = world.path().join("root");
    let fix = "give a path relative to the tool's root folder, such as `notes/today.md`";
    let stay = "use a path that stays inside";
    let cases = [
        ("/etc/passwd", format!("is absolute: {fix}")),
        ("..", format!("contains `..`: {fix}")),
        ("dir/../../outside/secret", format!("contains `..`: {fix}")),
        ("a\0b", format!("contains a zero byte: {fix}")),
        ("out", format!("leads out of the tool's root folder by a symbolic link: {stay}")),
        ("out/secret", format!("leads out of the tool's root folder by a symbolic link: {stay}")),
        ("out/no/such", format!("leads out of the tool's root folder by a symbolic link: {stay}")),
        (
            "out_absolute/secret",
            format!("leads out of the tool's root folder by a symbolic link: {stay}"),
        ),
        ("out_file", format!("leads out of the tool's root folder by a symbolic link: {stay}")),
        (
            "dir/up/outside/secret",
            format!("leads out of the tool's root folder by a symbolic link: {stay}"),
        ),
    ];
    for which in FILE_TOOLS {
        for (path, rule) in &cases {
            assert_eq!(failure(&root, which, path).await, format!("the path `{path}` {rule}"));
        }
    }
}

#[tokio::test]
async fn links_that_stay_inside_may_be_used() {
    let world = world();
    let root = world.path().join("root");
    assert_eq!(
        run(&builtin(&root, Builtin::ReadFile), json!({"path": "in/file"})).await,
        done("inside")
    );
    let written =
        run(&builtin(&root, Builtin::WriteFile), json!({"path": "in/new", "content": "x"})).await;
    assert_eq!(written, done("created in/new (1 bytes)\n"));
    assert_eq!(fs::read_to_string(root.join("dir/new")).unwrap(), "x");
}

#[tokio::test]
async fn a_link_to_something_new_outside_is_replaced_not_followed() {
    let world = world();
    let root = world.path().join("root");
    let before = outside(world.path());
    run(&builtin(&root, Builtin::WriteFile), json!({"path": "new_outside", "content": "x"})).await;
    assert_eq!(outside(world.path()), before);
    assert!(root.join("new_outside").symlink_metadata().unwrap().is_file());
}

fn step() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "..",
        ".",
        "",
        "dir",
        "sub",
        "file",
        "out",
        "out_absolute",
        "out_file",
        "up",
        "new_outside",
        "in",
        "dead",
        "loop",
        "secret",
        "outside",
        "root",
        "new",
        "\0",
        "~",
        " ",
        "...",
        "é",
    ])
}

fn path() -> impl Strategy<Value = String> {
    (any::<bool>(), prop::collection::vec(step(), 0..7)).prop_map(|(absolute, steps)| {
        format!("{}{}", if absolute { "/" } else { "" }, steps.join("/"))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn no_path_reads_or_changes_anything_outside(paths in prop::collection::vec(path(), 1..4)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let world = world();
        let root = world.path().join("root");
        let before = outside(world.path());
        for path in paths {
            for which in FILE_TOOLS {
                let arguments = json!({
                    "path": path, "content": "x", "old": "e-secret", "new": "y", "pattern": ".*",
                    "depth": 9, "max": 1000,
                });
                let ended = runtime.block_on(run(&builtin(&root, which), arguments));
                prop_assert!(!format!("{ended:?}").contains(SECRET), "{which:?} {path}: {ended:?}");
            }
        }
        prop_assert_eq!(outside(world.path()), before);
    }
}

/// Somebody swaps a folder for a link while files are written: never does one land outside.
#[test]
fn a_folder_that_is_swapped_for_a_link_meanwhile_is_no_way_out() {
    let world = world();
    let root = world.path().join("root");
    fs::create_dir(root.join("swap")).unwrap();
    symlink("../outside", root.join("other")).unwrap();
    let before = outside(world.path());
    let stop = AtomicBool::new(false);
    let endings = std::thread::scope(|scope| {
        scope.spawn(|| {
            let (swap, other) = (root.join("swap"), root.join("other"));
            while !stop.load(Ordering::Relaxed) {
                renameat_with(CWD, &swap, CWD, &other, RenameFlags::EXCHANGE).unwrap();
            }
        });
        let endings = write_many(&root);
        stop.store(true, Ordering::Relaxed);
        endings
    });
    assert_eq!(endings, [false, true].into());
    assert_eq!(outside(world.path()), before);
}

/// Writes until both happened, or often; tells whether some were done and whether some were not.
fn write_many(root: &Path) -> BTreeSet<bool> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let tool = builtin(root, Builtin::WriteFile);
    let mut endings = BTreeSet::new();
    for n in 0..20_000 {
        let arguments = json!({"path": format!("swap/{n}"), "content": "x"});
        let ended = runtime.block_on(run(&tool, arguments));
        endings.insert(matches!(ended, Ended::Done(_)));
        if n > 300 && endings.len() == 2 {
            break;
        }
    }
    endings
}
