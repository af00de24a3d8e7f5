"""Compares a component's Props type with the JSDoc above the component.

Usage: check_props.py -- src/components/Button.tsx

Prints one JSON object: `ok`, `exists`, `problems` (one sentence each) and, when the file is wrong and
the JSDoc says what is right, `fix` with `old` and `new`, a passage of the file and what belongs there.
A wrong file is an answer, not a failure: the exit code is 0.
"""

import json
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path

OPEN, CLOSE = "([{<", ")]}>"


@dataclass(frozen=True)
class Prop:
    name: str
    kind: str
    optional: bool

    def line(self):
        return f"  {self.name}{'?' if self.optional else ''}: {self.kind};"


def pieces(text, separators):
    """Splits at separators that stand outside of brackets and strings; comments are dropped."""
    parts, current, depth, at = [], "", 0, 0
    while at < len(text):
        char = text[at]
        skipped = re.compile(r"//[^\n]*|/\*.*?\*/", re.S).match(text, at)
        quoted = re.compile(r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|`(?:\\.|[^`\\])*`").match(text, at)
        if skipped:
            at = skipped.end()
            continue
        if quoted:
            current, at = current + quoted.group(), quoted.end()
            continue
        if text.startswith("=>", at):
            current, at = current + "=>", at + 2
            continue
        depth += (char in OPEN) - (char in CLOSE)
        if depth == 0 and char in separators:
            parts, current = parts + [current], ""
        else:
            current += char
        at += 1
    return [part.strip() for part in parts + [current] if part.strip()]


def closing(text, start):
    """The place behind the bracket that closes the one at `start`, or None."""
    depth, at = 0, start
    while at < len(text):
        quoted = re.compile(r"\"(?:\\.|[^\"\\\n])*\"|//[^\n]*|/\*.*?\*/|=>", re.S).match(text, at)
        if quoted:
            at = quoted.end()
            continue
        depth += (text[at] in OPEN) - (text[at] in CLOSE)
        at += 1
        if depth == 0:
            return at
    return None


def normal(kind):
    """A type as it is compared: blanks, kind of quotes and order of a union do not count."""
    members = pieces(kind.replace("'", '"'), "|")
    tidy = [re.sub(r"\s*([^\w\s\"])\s*", r"\1", re.sub(r"\s+", " ", member)) for member in members]
    return "|".join(sorted(tidy))


def documented(comment):
    """The props of a JSDoc, in order."""
    text = re.sub(r"^[ \t]*\*[ \t]?", "", comment, flags=re.M)
    props = []
    for tag in re.finditer(r"@(?:prop|property|param)\s+\{", text):
        end = closing(text, tag.end() - 1)
        if end is None:
            continue
        kind = " ".join(text[tag.end() : end - 1].split())
        name = re.match(r"\s*(\[)?\s*(?:props\.)?([\w$]+)", text[end:])
        if name:
            optional = bool(name.group(1)) or kind.endswith("=")
            props.append(Prop(name.group(2), kind.removesuffix("="), optional))
    return props


def declared(body):
    """The props of an interface's body, in order."""
    # A union may stand on several lines.
    body = re.sub(r"\s*\n\s*(?=[|&])|(?<=[:|&])\s*\n\s*", " ", body)
    props = []
    for member in pieces(body, ";\n,"):
        found = re.match(r"(?:readonly\s+)?[\"']?([\w$]+)[\"']?\s*(\?)?\s*:\s*(.+)", member, re.S)
        if found:
            props.append(Prop(found.group(1), " ".join(found.group(3).split()), bool(found.group(2))))
    return props


@dataclass(frozen=True)
class Component:
    name: str
    doc: str
    doc_start: int
    signature: str
    parameter: str


def component(text, name):
    """The component with the JSDoc right above it, or None."""
    head = re.search(rf"^(?:export\s+)?(?:default\s+)?(?:function|const)\s+{name}\b", text, re.M)
    if not head:
        return None
    bracket = text.find("(", head.end())
    end = closing(text, bracket) if bracket >= 0 else None
    if end is None:
        return None
    before = text[: head.start()].rstrip()
    doc_start = before.rfind("/**") if before.endswith("*/") else -1
    doc = before[doc_start:] if doc_start >= 0 else ""
    at = doc_start if doc_start >= 0 else head.start()
    return Component(name, doc, at, text[head.start() : end], text[bracket + 1 : end - 1])


@dataclass(frozen=True)
class Declaration:
    text: str
    props: list
    is_interface: bool


def declaration(text, name):
    """The declaration of a type with its exact text, or None."""
    found = re.search(rf"^[ \t]*(?:export\s+)?(interface|type)\s+{name}\b[^{{=;\n]*=?\s*", text, re.M)
    if not found:
        return None
    is_interface = found.group(1) == "interface"
    if text.startswith("{", found.end()):
        end = closing(text, found.end())
        if end is None:
            return None
        props = declared(text[found.end() + 1 : end - 1])
        end += 1 if text.startswith(";", end) else 0
        return Declaration(text[found.start() : end], props, is_interface)
    line = re.compile(r"[^;\n]*;?").match(text, found.end())
    return Declaration(text[found.start() : line.end()], [], is_interface)


def compare(wanted, props):
    """What differs, one sentence each."""
    have = {prop.name: prop for prop in props}
    for prop in wanted:
        mine = have.pop(prop.name, None)
        if mine is None:
            yield f"`{prop.name}` is in the JSDoc and not in the interface"
            continue
        if normal(mine.kind) != normal(prop.kind):
            yield f"`{prop.name}` is `{mine.kind}`; the JSDoc says `{prop.kind}`"
        if mine.optional != prop.optional:
            says = "optional" if prop.optional else "required"
            yield f"`{prop.name}` has to be {says}, as the JSDoc says"
    for name in have:
        yield f"`{name}` is in the interface and not in the JSDoc"


def taken(parameter):
    """Names that the component takes out of its props."""
    if not parameter.lstrip().startswith("{"):
        return []
    start = parameter.index("{")
    inner = parameter[start + 1 : (closing(parameter, start) or len(parameter)) - 1]
    names = [re.match(r"[\w$]+", part) for part in pieces(inner, ",") if not part.startswith("...")]
    return [name.group() for name in names if name]


def interface(name, wanted):
    return "\n".join([f"export interface {name} {{", *(prop.line() for prop in wanted), "}"])


def fix(text, found, it, props_name, wanted):
    """A passage that occurs once, and what belongs there; None when the text cannot be mended so."""
    uses = re.search(rf"\b{props_name}\b", it.signature)
    if found and uses:
        pair = {"old": found.text.strip(), "new": interface(props_name, wanted)}
    elif not found and it.doc:
        signature = re.sub(r":\s*any\s*\)$", f": {props_name})", it.signature)
        if f": {props_name}" not in signature:
            return None
        old = text[it.doc_start : text.index(it.signature, it.doc_start)] + it.signature
        new = f"{interface(props_name, wanted)}\n\n{old.removesuffix(it.signature)}{signature}"
        pair = {"old": old, "new": new}
    else:
        return None
    return pair if pair["old"] != pair["new"] and text.count(pair["old"]) == 1 else None


def check(text, name):
    it = component(text, name)
    if it is None:
        return answer([f"there is no component `{name}` in the file"])
    wanted = documented(it.doc)
    if not wanted:
        how = "write `@prop {type} name - meaning`"
        return answer([f"the JSDoc above `{name}` names no props: {how}"])
    props_name = f"{name}Props"
    found = declaration(text, props_name)
    problems = []
    if found is None:
        problems.append(f"there is no `interface {props_name}`")
    elif not found.is_interface:
        problems.append(f"`{props_name}` is a type alias, not an interface")
    elif not found.text.lstrip().startswith("export"):
        problems.append(f"`{props_name}` is not exported")
    if found and found.props:
        problems.extend(compare(wanted, found.props))
    elif found:
        problems.extend(f"`{prop.name}` has no type" for prop in wanted)
    if not re.search(rf"\b{props_name}\b", it.signature):
        problems.append(f"`{name}` does not take `{props_name}`")
    known = {prop.name for prop in wanted}
    strangers = [one for one in taken(it.parameter) if one not in known]
    problems.extend(f"`{name}` uses `{one}`, which the JSDoc does not name" for one in strangers)
    return answer(problems, fix(text, found, it, props_name, wanted) if problems else None)


def answer(problems, mend=None, exists=True):
    result = {"ok": not problems, "exists": exists, "problems": problems}
    return result | ({"fix": mend} if mend else {})


def main(arguments):
    if len(arguments) != 2 or arguments[0] != "--":
        print("usage: check_props.py -- src/components/Button.tsx", file=sys.stderr)
        return 2
    root = Path(os.environ.get("SYSTOLE_CODE_DIR") or "work").resolve()
    path = (root / arguments[1]).resolve()
    if not path.is_relative_to(root):
        print(f"`{arguments[1]}` lies outside of the repository: give a path inside it", file=sys.stderr)
        return 2
    if path.is_file():
        result = check(path.read_text(encoding="utf-8"), path.stem)
    else:
        result = answer([f"`{arguments[1]}` does not exist"], exists=False)
    print(json.dumps(result, ensure_ascii=False))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
