"""Prints how the repository differs from the original, as a unified diff.

Usage: show_diff.py [--path=src/components/Button.tsx]

The repository is SYSTOLE_CODE_DIR (`work` if unset), the original SYSTOLE_CODE_BASE (`repo` if unset).
"""

import difflib
import os
import sys
from pathlib import Path

SKIPPED = {".git", "node_modules", "dist"}


def lines(path):
    """The lines of a text file, None for one that is not there, and a remark for other files."""
    if not path.is_file():
        return None
    try:
        return path.read_text(encoding="utf-8").splitlines(keepends=True)
    except UnicodeDecodeError:
        return [f"[{path.stat().st_size} bytes, not text]\n"]


def files(root):
    found = set()
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in SKIPPED]
        found.update((Path(folder) / name).relative_to(root) for name in names)
    return found


def difference(base, root, path):
    before, after = lines(base / path), lines(root / path)
    from_name = "/dev/null" if before is None else f"a/{path.as_posix()}"
    to_name = "/dev/null" if after is None else f"b/{path.as_posix()}"
    for line in difflib.unified_diff(before or [], after or [], from_name, to_name):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def main(arguments):
    base = Path(os.environ.get("SYSTOLE_CODE_BASE") or "repo").resolve()
    root = Path(os.environ.get("SYSTOLE_CODE_DIR") or "work").resolve()
    only = next((one.removeprefix("--path=") for one in arguments if one.startswith("--path=")), None)
    for folder in (base, root):
        if not folder.is_dir():
            print(f"`{folder}` is not a folder", file=sys.stderr)
            return 2
    paths = files(base) | files(root) if only is None else {Path(os.path.normpath(only))}
    if any(path.is_absolute() or ".." in path.parts for path in paths):
        print(f"`{only}` lies outside of the repository: give a path inside it", file=sys.stderr)
        return 2
    text = "".join(line for path in sorted(paths) for line in difference(base, root, path))
    print(text.removesuffix("\n") or "no difference")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
