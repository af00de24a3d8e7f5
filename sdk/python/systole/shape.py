"""What leaves the worker: readable text, within its budget, without secrets."""

from __future__ import annotations

import json
import os
import re
from typing import Any

MOST_BYTES = 48 * 1024
"""Longer texts are not for a message, whatever a tool's budget is."""
MOST_ARTIFACT = 64 * 1024 * 1024
"""Longer texts are cut before they are stored."""
_CHARS_PER_TOKEN = 4

_SECRETS = re.compile(
    r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\Z)"
    r"|\beyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{5,}(?:\.[A-Za-z0-9_-]*)?"
    r"|\b(?:sk|pk|rk)[-_][A-Za-z0-9_-]{16,}|\bgh[pousr]_[A-Za-z0-9]{20,}"
    r"|\bxox[a-z]-[A-Za-z0-9-]{10,}|\b(?:AKIA|ASIA)[0-9A-Z]{16}|\bAIza[0-9A-Za-z_-]{30,}"
    r"|(?<=://)[^\s/:@]*:[^\s/@]+(?=@)"
    r"|(?i:(?<=bearer )[A-Za-z0-9._~+/=-]{16,})"
)
_CONTROL = re.compile(r"\x1b\[[ -?]*[@-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class Secret:
    """A value that is never printed, logged or sent: only `reveal` gives it away."""

    __slots__ = ("_value", "name")

    def __init__(self, name: str, value: str) -> None:
        self.name = name
        self._value = value

    @classmethod
    def from_env(cls, name: str) -> Secret:
        if not (value := os.environ.get(name, "")):
            raise KeyError(f"the environment variable {name} is not set")
        return cls(name, value)

    def reveal(self) -> str:
        return self._value

    def __repr__(self) -> str:
        return f"Secret({self.name})"

    __str__ = __repr__


class Redactor:
    """Takes secrets out of texts: those that were declared, and what looks like one."""

    def __init__(self) -> None:
        self._known: list[Secret] = []

    def add(self, secret: Secret) -> None:
        # The longest first, so that no secret that contains another leaves a rest.
        self._known = sorted([*self._known, secret], key=lambda known: -len(known.reveal()))

    def redact(self, text: str) -> str:
        for secret in self._known:
            text = text.replace(secret.reveal(), f"[{secret.name}]")
        return _SECRETS.sub("[redacted]", text)


def as_text(result: Any) -> str:
    """A tool's result as text."""
    if result is None:
        return ""
    if isinstance(result, bytes):
        return result.decode(errors="replace")
    return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, default=str)


def within(text: str, most: int) -> str:
    """At most so many bytes of UTF-8, never a part of a character."""
    data = text.encode(errors="replace")
    return text if len(data) <= most else data[:most].decode(errors="ignore")


def shape(text: str, tokens: int) -> tuple[str, str | None]:
    """What a model reads of a text, and the whole of it when that is more."""
    text = _CONTROL.sub("", text).encode(errors="replace").decode()
    most = min(tokens * _CHARS_PER_TOKEN, MOST_BYTES)
    size = len(text.encode())
    if size <= most:
        return text, None
    head = within(text, most * 3 // 8)
    tail = text.encode()[-(most * 3 // 8) or size :].decode(errors="ignore")
    out = len(text) - len(head) - len(tail)
    content = f"{head}\n[... {out} of {len(text)} characters left out ...]\n{tail}"
    full = within(text, MOST_ARTIFACT)
    if len(full) < len(text):
        content += f"\n[The result was larger than {MOST_ARTIFACT} bytes; the rest was dropped.]"
    return content, full
