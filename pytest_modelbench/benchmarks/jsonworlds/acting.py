"""Tools over a world of JSON, whose arguments are held to their schema all the way down.

A tool's code may then take its arguments for what the schema says: what does not fit is told to
the model, and is no fault of ours.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pydantic import JsonValue

from pytest_modelbench.benchmarks.tools import Tool, ToolRefused

TEXT: dict[str, JsonValue] = {"type": "string"}
WHOLE: dict[str, JsonValue] = {"type": "integer"}
FLAG: dict[str, JsonValue] = {"type": "boolean"}
TEXTS: dict[str, JsonValue] = {"type": "array", "items": {"type": "string"}}
RECORD: dict[str, JsonValue] = {"type": "object"}

Schemas = Mapping[str, Mapping[str, JsonValue]]
Arguments = Mapping[str, JsonValue]
Run = Callable[[Arguments], str]

_KINDS: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}


def acting(
    name: str,
    description: str,
    run: Run,
    required: Schemas | None = None,
    optional: Schemas | None = None,
    *,
    ends: bool = False,
) -> Tool:
    """Return a tool that refuses arguments that do not fit, and those that it has not got."""
    needed, free = required or {}, optional or {}
    schema: dict[str, JsonValue] = {
        "type": "object",
        "properties": {key: dict(one) for key, one in {**needed, **free}.items()},
        "required": list(needed),
        "additionalProperties": False,
    }

    def checked(arguments: Mapping[str, JsonValue]) -> str:
        problem = misfit(schema, dict(arguments))
        if problem:
            raise ToolRefused(f"{problem}. Nothing was done.")
        return run(arguments)

    return Tool(name, description, schema, checked, ends)


def described(schema: Mapping[str, JsonValue], description: str) -> dict[str, JsonValue]:
    """Return a schema with words to it."""
    return {**schema, "description": description}


def one_of(*values: str) -> dict[str, JsonValue]:
    """Return the schema of a text that is one of some."""
    return {"type": "string", "enum": list(values)}


def misfit(schema: Mapping[str, JsonValue], value: JsonValue, where: str = "") -> str:
    """Say what of a value does not fit a schema of the kinds used here; '' for nothing.

    Known are type (one or several), enum, properties, required, additionalProperties and items.
    """
    place = where or "the arguments"
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if isinstance(kinds, list) and kinds and not any(_is(str(kind), value) for kind in kinds):
        return f"{place} must be of type {' or '.join(map(str, kinds))}"
    choices = schema.get("enum")
    if isinstance(choices, list) and value not in choices:
        return f"{place} must be one of {', '.join(map(str, choices))}"
    if isinstance(value, dict):
        return _misfit_of_object(schema, value, where)
    items = schema.get("items")
    if isinstance(value, list) and isinstance(items, dict):
        problems = (misfit(items, one, f"{place}[{n}]") for n, one in enumerate(value))
        return next((problem for problem in problems if problem), "")
    return ""


def _is(kind: str, value: JsonValue) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, _KINDS.get(kind, ()))


def _misfit_of_object(
    schema: Mapping[str, JsonValue], value: Mapping[str, JsonValue], where: str
) -> str:
    known, required = schema.get("properties"), schema.get("required")
    known = known if isinstance(known, dict) else {}
    prefix = f"{where}." if where else ""
    for name in required if isinstance(required, list) else []:
        if name not in value:
            return f"{prefix}{name} is missing"
    for name, one in value.items():
        inner = known.get(name)
        if isinstance(inner, dict):
            problem = misfit(inner, one, f"{prefix}{name}")
            if problem:
                return problem
        elif schema.get("additionalProperties") is False:
            return f"there is no {prefix}{name}; there are: {', '.join(known) or 'none'}"
    return ""
