//! What the file builtins answer.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use definitions::run::Builtin;
use proto::observation::Receipt;
use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use worker::executor::{Ended, Output};

use crate::support::*;

fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempdir().unwrap();
    for (path, content) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    folder
}

async fn call(root: &TempDir, which: Builtin, arguments: Value) -> Ended {
    run(&builtin(root.path(), which), arguments).await
}

async fn list(root: &TempDir, arguments: Value) -> Ended {
    call(root, Builtin::ListFiles, arguments).await
}

async fn read(root: &TempDir, arguments: Value) -> Ended {
    call(root, Builtin::ReadFile, arguments).await
}

async fn search(root: &TempDir, arguments: Value) -> Ended {
    call(root, Builtin::SearchFiles, arguments).await
}

async fn write(root: &TempDir, arguments: Value) -> Ended {
    call(root, Builtin::WriteFile, arguments).await
}

async fn edit(root: &TempDir, arguments: Value) -> Ended {
    call(root, Builtin::EditFile, arguments).await
}

/// The names in a folder, sorted.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn a_folder_is_listed_sorted_and_as_deep_as_asked() {
    let root = folder(&[("b.txt", "12"), ("a/x.txt", ""), ("a/deep/y.txt", "1"), (".hidden", "")]);
    symlink("/etc", root.path().join("link")).unwrap();
    let flat = ".hidden (0 bytes)\na/\nb.txt (2 bytes)\nlink (link)\n";
    assert_eq!(list(&root, json!({"depth": 1})).await, done(flat));
    let two = ".hidden (0 bytes)\na/\na/deep/\na/x.txt (0 bytes)\nb.txt (2 bytes)\nlink (link)\n";
    assert_eq!(list(&root, json!({})).await, done(two));
    let deep = "a/deep/\na/deep/y.txt (1 bytes)\na/x.txt (0 bytes)\n";
    assert_eq!(list(&root, json!({"path": "a", "depth": 5})).await, done(deep));
    assert_eq!(list(&root, json!({"path": "b.txt"})).await, done("b.txt (2 bytes)\n"));
    fs::create_dir(root.path().join("empty")).unwrap();
    assert_eq!(list(&root, json!({"path": "./empty/"})).await, done("[empty folder]\n"));
}

#[tokio::test]
async fn a_folder_with_very_many_entries_is_cut() {
    let root = tempdir().unwrap();
    (0..2001).for_each(|n| fs::write(root.path().join(format!("{n:04}")), "").unwrap());
    let listed = text(list(&root, json!({})).await);
    assert_eq!(listed.lines().count(), 2001);
    let last = "[more entries follow: list a folder below, or lower the depth]";
    assert_eq!(listed.lines().last(), Some(last));
}

#[tokio::test]
async fn a_file_is_read_in_pages() {
    let root = folder(&[("f", "one\ntwo\nthree\nfour")]);
    assert_eq!(read(&root, json!({"path": "f"})).await, done("one\ntwo\nthree\nfour"));
    let page = read(&root, json!({"path": "f", "from_line": 2, "lines": 2})).await;
    assert_eq!(page, done("two\nthree\n[more lines follow: continue with from_line 4]\n"));
    assert_eq!(read(&root, json!({"path": "f", "from_line": 4})).await, done("four"));
    let why = "`f` has no line 9: it ends before";
    assert_eq!(read(&root, json!({"path": "f", "from_line": 9})).await, failed(why));
}

#[tokio::test]
async fn an_empty_file_is_read_as_nothing() {
    let root = folder(&[("f", "")]);
    assert_eq!(read(&root, json!({"path": "f"})).await, done(""));
}

#[tokio::test]
async fn a_page_is_at_most_a_mebibyte_and_the_next_goes_on() {
    let line = format!("{}\n", "x".repeat(1023));
    let root = folder(&[("f", &line.repeat(1500))]);
    let page = text(read(&root, json!({"path": "f"})).await);
    let note = "[more lines follow: continue with from_line 1025]\n";
    assert!(page == format!("{}{note}", line.repeat(1024)));
    let rest = text(read(&root, json!({"path": "f", "from_line": 1025})).await);
    assert!(rest == line.repeat(1500 - 1024));
}

#[tokio::test]
async fn a_line_longer_than_a_page_is_cut() {
    let root = folder(&[("f", &"x".repeat(3_000_000))]);
    let page = text(read(&root, json!({"path": "f"})).await);
    let note = "\n[line 1 is longer than one call returns; its rest was left out]\n";
    assert!(page == format!("{}{note}", "x".repeat(1024 * 1024)));
}

#[tokio::test]
async fn what_is_no_text_file_is_not_read() {
    let root = folder(&[("binary", "a\0b"), ("d/f", "")]);
    let cases = [
        ("binary", "`binary` is not a text file: this tool reads text only"),
        ("none", "`none` does not exist: list the folder to see what does"),
        ("d", "`d` is a folder: name a file in it"),
        ("", "`.` is a folder: name a file in it"),
        (
            "binary/x",
            "`binary/x` goes through something that is not a folder: list the folder above it",
        ),
    ];
    for (path, why) in cases {
        assert_eq!(read(&root, json!({"path": path})).await, failed(why));
    }
}

#[tokio::test]
async fn a_pipe_is_refused_and_holds_nobody_up() {
    let root = tempdir().unwrap();
    let made = std::process::Command::new("mkfifo").arg(root.path().join("p")).status().unwrap();
    assert!(made.success());
    let why = "`p` is a device, pipe or socket: only ordinary files can be used";
    assert_eq!(read(&root, json!({"path": "p"})).await, failed(why));
    assert_eq!(write(&root, json!({"path": "p", "content": ""})).await, failed(why));
    let edited = edit(&root, json!({"path": "p", "old": "a", "new": "b"})).await;
    assert_eq!(edited, failed(why));
    assert_eq!(search(&root, json!({"pattern": "a"})).await, done("[no match]\n"));
}

#[tokio::test]
async fn wrong_arguments_start_nothing() {
    let root = tempdir().unwrap();
    let why = "argument `path` is missing: give a text";
    assert_eq!(read(&root, json!({})).await, not_started(why));
    let why = "argument `lines` is -1: give a whole number from 1";
    assert_eq!(read(&root, json!({"path": "a", "lines": -1})).await, not_started(why));
    let Ended::NotStarted(error) = search(&root, json!({"pattern": "("})).await else {
        panic!("it started")
    };
    assert!(error.why.contains("unclosed group"), "{}", error.why);
}

#[tokio::test]
async fn matches_are_found_with_file_and_line() {
    let root = folder(&[
        ("a.rs", "fn one() {}\nfn two() {}\n"),
        ("src/b.rs", "// fn in a comment\r\n"),
        ("src/c.txt", "fn three"),
        (".gitignore", "target/\n"),
        ("target/d.rs", "fn four"),
        (".git/e.rs", "fn five"),
        ("bin", "fn six\0"),
    ]);
    let all = "a.rs:1: fn one() {}\na.rs:2: fn two() {}\nsrc/b.rs:1: // fn in a comment\n\
               src/c.txt:1: fn three\n";
    assert_eq!(search(&root, json!({"pattern": r"\bfn\b"})).await, done(all));
    let some = search(&root, json!({"pattern": "fn", "path": "src", "glob": "*.rs"})).await;
    assert_eq!(some, done("src/b.rs:1: // fn in a comment\n"));
    let ends = search(&root, json!({"pattern": r"\{\}$", "max": 1})).await;
    let cut = "a.rs:1: fn one() {}\n\
               [more matches follow the first 1: narrow the pattern, or raise max up to 1000]\n";
    assert_eq!(ends, done(cut));
    assert_eq!(search(&root, json!({"pattern": "nothing"})).await, done("[no match]\n"));
}

#[tokio::test]
async fn long_and_invalid_lines_are_shown_in_part() {
    let root = tempdir().unwrap();
    let line = [b"key \xFF ".to_vec(), vec![b'x'; 500]].concat();
    fs::write(root.path().join("f"), line).unwrap();
    let found = text(search(&root, json!({"pattern": "key"})).await);
    assert_eq!(found, format!("f:1: key \u{FFFD} {}\n", "x".repeat(294)));
}

#[tokio::test]
async fn a_file_is_created_with_its_folders_and_replaced_as_a_whole() {
    let root = tempdir().unwrap();
    let path = root.path().join("a/b/c.txt");
    let first = write(&root, json!({"path": "a/b/c.txt", "content": "one\n"})).await;
    assert_eq!(first, done("created a/b/c.txt (4 bytes)\n"));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o750)).unwrap();
    let second = write(&root, json!({"path": "a/b/c.txt", "content": "zwei"})).await;
    assert_eq!(second, done("replaced a/b/c.txt (4 bytes)\n"));
    assert_eq!(fs::read_to_string(&path).unwrap(), "zwei");
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o750);
    assert_eq!(names(&root.path().join("a/b")), ["c.txt"]);
}

#[tokio::test]
async fn what_cannot_be_written_changes_nothing() {
    let root = folder(&[("f", "old"), ("d/x", "")]);
    let why = "`d` is a folder: name a file in it";
    assert_eq!(write(&root, json!({"path": "d", "content": ""})).await, failed(why));
    let why = "`f/g` goes through something that is not a folder: list the folder above it";
    assert_eq!(write(&root, json!({"path": "f/g", "content": ""})).await, failed(why));
    let long = "x".repeat(10 * 1024 * 1024 + 1);
    let why = "argument `content` has 10485761 bytes, 10485760 are allowed: write less";
    assert_eq!(write(&root, json!({"path": "f", "content": long})).await, not_started(why));
    assert_eq!(fs::read_to_string(root.path().join("f")).unwrap(), "old");
    assert_eq!(names(root.path()), ["d", "f"]);
}

#[tokio::test]
async fn the_one_place_is_edited_and_shown() {
    let root = folder(&[("f", "one\nlet x = 1;\nthree\n")]);
    let edited =
        edit(&root, json!({"path": "f", "old": "x = 1", "new": "y = 2;\nlet z = 3"})).await;
    let shown = "edited f at line 2\n-let x = 1;\n+let y = 2;\n+let z = 3;\n";
    assert_eq!(edited, done(shown));
    let now = fs::read_to_string(root.path().join("f")).unwrap();
    assert_eq!(now, "one\nlet y = 2;\nlet z = 3;\nthree\n");
}

#[tokio::test]
async fn an_edit_that_is_not_certain_changes_nothing() {
    let root = folder(&[("f", "aaa\n  b\nab\n"), ("bin", "")]);
    fs::write(root.path().join("bin"), b"a\xFF").unwrap();
    let cases = [
        ("f", "zz", "`old` does not occur in `f`: read the file and copy the text exactly"),
        (
            "f",
            "\tb",
            "`old` does not occur in `f`: line 2 is like its first line, but blanks or later lines \
             differ: read the file there and copy the text exactly",
        ),
        (
            "f",
            "b",
            "`old` occurs more than once in `f` (lines 2, 3): add lines around it until it is unique",
        ),
        (
            "f",
            "aa",
            "`old` occurs more than once in `f` (lines 1): add lines around it until it is unique",
        ),
        ("bin", "a", "`bin` is not valid UTF-8: this tool edits text only"),
        ("none", "a", "`none` does not exist: list the folder to see what does"),
        ("no/ne", "a", "`no/ne` does not exist: list the folder to see what does"),
    ];
    for (path, old, why) in cases {
        let edited = edit(&root, json!({"path": path, "old": old, "new": "x"})).await;
        assert_eq!(edited, failed(why));
    }
    assert_eq!(fs::read_to_string(root.path().join("f")).unwrap(), "aaa\n  b\nab\n");
    assert_eq!(names(root.path()), ["bin", "f"]);
}

#[tokio::test]
async fn a_missing_root_is_named() {
    let root = tempdir().unwrap();
    let tool = builtin(&root.path().join("none"), Builtin::ListFiles);
    let place = root.path().display();
    let why = format!(
        "the tool's root folder `{place}/none` cannot be opened: No such file or directory (os error 2)"
    );
    assert_eq!(run(&tool, json!({})).await, failed(&why));
}

#[tokio::test]
async fn cancelled_before_it_began_nothing_is_written() {
    let root = tempdir().unwrap();
    let tool = builtin(root.path(), Builtin::WriteFile);
    let prepared = tool.prepare(&job(json!({"path": "f", "content": "x"}))).await.unwrap();
    let cancel = CancellationToken::new();
    cancel.cancel();
    let receipt = Receipt::StoppedBeforeEffect;
    let expected = Ended::Cancelled { output: Output::default(), receipt };
    assert_eq!(prepared.run(soon_enough(), cancel).await, expected);
    assert_eq!(names(root.path()), Vec::<String>::new());
}

#[tokio::test]
async fn a_search_that_takes_too_long_is_ended() {
    let root = tempdir().unwrap();
    let file = fs::File::create(root.path().join("large")).unwrap();
    // Text of a kind: one line end in the first block, then nothing but a hole of a terabyte.
    fs::write(root.path().join("large"), "x\n".repeat(5000)).unwrap();
    file.set_len(1 << 40).unwrap();
    let tool = builtin(root.path(), Builtin::SearchFiles);
    let prepared = tool.prepare(&job(json!({"pattern": "no such text"}))).await.unwrap();
    let deadline = Instant::now() + std::time::Duration::from_millis(200);
    let ended = prepared.run(deadline, CancellationToken::new()).await;
    assert_eq!(ended, Ended::TimedOut { output: Output::default() });
}
