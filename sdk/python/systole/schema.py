"""From a function's signature to the JSON Schema of its arguments."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable
from typing import Any, Literal, Union, get_args, get_origin

from .errors import InvalidTool

_PLAIN: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    Any: {},
    dict: {"type": "object"},
    list: {"type": "array"},
}


def of_type(annotation: Any) -> dict[str, Any]:
    """The schema of one type. `Annotated[T, "words"]` describes it, `Annotated[T, {...}]` adds keywords."""
    if annotation in _PLAIN:
        return dict(_PLAIN[annotation])
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is typing.Annotated:
        schema = of_type(args[0])
        for extra in args[1:]:
            schema.update({"description": extra} if isinstance(extra, str) else extra)
        return schema
    if origin is Literal:
        return {"enum": list(args)}
    if origin is list:
        return {"type": "array", "items": of_type(args[0])}
    if origin is dict and args[0] is str:
        return {"type": "object", "additionalProperties": of_type(args[1])}
    if origin in (Union, types.UnionType):
        known = [of_type(arg) for arg in args if arg is not type(None)]
        if len(known) < len(args):
            known.append({"type": "null"})
        return known[0] if len(known) == 1 else {"anyOf": known}
    raise InvalidTool(f"the type {annotation!r} has no schema: use `parameters=` to give one")


def of_function(function: Callable[..., Any], without: str | None) -> dict[str, Any]:
    """The object schema of a function's parameters, but for the one named `without`."""
    hints = typing.get_type_hints(function, include_extras=True)
    properties: dict[str, Any] = {}
    required: list[str] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if name == without:
            continue
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise InvalidTool(f"parameter `{name}` of {function.__name__} has no name to call it by")
        if name not in hints:
            raise InvalidTool(f"parameter `{name}` of {function.__name__} has no type")
        properties[name] = of_type(hints[name])
        if parameter.default is parameter.empty:
            required.append(name)
        elif parameter.default is not None:
            properties[name].setdefault("default", parameter.default)
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }
