"""A tool: what it promises, and the function that carries it out."""

from __future__ import annotations

import inspect
import re
import threading
import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import jsonschema

from . import schema, wire
from .errors import InvalidTool

Effect = Literal["read_only", "idempotent", "checkable", "irreversible"]

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")


class Call:
    """What a running tool may know of its call, and how it hears of a cancel.

    A parameter annotated with this class gets it; no schema mentions it.
    """

    def __init__(
        self, *, tool_call_id: str, idempotency_key: str, attempt: int, alive: Callable[[], None]
    ) -> None:
        self.tool_call_id = tool_call_id
        self.idempotency_key = idempotency_key
        """The same for every attempt of the call: pass it on to what is called."""
        self.attempt = attempt
        self._stop = threading.Event()
        self._alive = alive

    @property
    def cancelled(self) -> bool:
        """Whether the tool is to stop: it was cancelled, or its time is over."""
        return self._stop.is_set()

    def wait(self, seconds: float) -> bool:
        """Sleeps, in a function that is not async, and tells whether it is to stop."""
        return self._stop.wait(seconds)

    def progress(self) -> None:
        """Tells the bus at once that the call is being worked on. It is told three times in each ack
        wait anyway, also while the tool blocks."""
        self._alive()

    def _cancel(self) -> None:
        self._stop.set()


@dataclass(frozen=True)
class Tool:
    """A declared tool."""

    contract: dict[str, Any]
    function: Callable[..., Any]
    probe: Callable[..., Any] | None
    validator: Any

    @property
    def name(self) -> str:
        return str(self.contract["name"])

    @property
    def effect(self) -> str:
        return str(self.contract["effect"])

    @property
    def timeout(self) -> float:
        """Seconds."""
        return float(self.contract["timeout_ms"]) / 1000

    def problems(self, arguments: dict[str, Any]) -> str | None:
        """What is wrong with arguments: field, rule and what was given."""
        errors = sorted(self.validator.iter_errors(arguments), key=lambda error: error.json_path)
        if not errors:
            return None
        lines = (f"- `{error.json_path[2:] or 'arguments'}`: {error.message[:300]}" for error in errors[:10])
        return "\n".join(lines)


def declare(
    function: Callable[..., Any],
    *,
    name: str | None = None,
    description: str | None = None,
    effect: Effect = "irreversible",
    parameters: dict[str, Any] | None = None,
    timeout: float = 3.0,
    max_attempts: int = 3,
    backoff: float = 0.5,
    approval: Literal["never", "always", "when_tainted"] = "never",
    permissions: Sequence[str] = (),
    result_tokens: int = 300,
    probe: Callable[..., Any] | None = None,
    version: str = "",
) -> Tool:
    """Makes a tool of a function; `Worker.tool` is the decorator for it.

    Without `effect` nothing is assumed to be safe to repeat. `version` goes into the fingerprint
    beside the function's source: change it when what the function calls has changed.
    """
    name = name or function.__name__
    description = description or inspect.getdoc(function) or ""
    if not _NAME.match(name):
        raise InvalidTool(f"`{name}` is no tool name: 1 to 64 of A-Z, a-z, 0-9, - and _")
    if not description:
        raise InvalidTool(f"tool {name} has no description: the model chooses by it")
    if effect not in wire.EFFECTS:
        raise InvalidTool(f"tool {name}: effect `{effect}` is none of {', '.join(wire.EFFECTS)}")
    if (effect == "checkable") != (probe is not None):
        raise InvalidTool(f"tool {name}: a checkable tool needs a `probe`, and no other has one")
    if parameters is None:
        parameters = schema.of_function(function, without=call_parameter(function))
    jsonschema.Draft202012Validator.check_schema(parameters)
    contract = {
        "name": name,
        "description": description,
        "parameters": parameters,
        "effect": effect,
        "timeout_ms": round(timeout * 1000),
        "retry": {"max_attempts": max(1, max_attempts), "backoff_ms": round(backoff * 1000)},
        "approval": approval,
        "permissions": list(permissions),
        "result_tokens": result_tokens,
    }
    sources = [version, source(function), source(probe) if probe else ""]
    text = wire.canonical({"contract": contract, "implementation": sources})
    contract["fingerprint"] = wire.sha256(text.encode())
    return Tool(contract, function, probe, jsonschema.Draft202012Validator(parameters))


def call_parameter(function: Callable[..., Any]) -> str | None:
    """The parameter that gets the `Call`."""
    hints = typing.get_type_hints(function)
    return next((name for name, hint in hints.items() if hint is Call and name != "return"), None)


def source(function: Callable[..., Any]) -> str:
    try:
        return inspect.getsource(function)
    except (OSError, TypeError):
        return getattr(function, "__qualname__", "")
