"""The tools by which a candidate acts in a benchmark's world."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue


class ToolRefused(Exception):
    """A tool cannot do what it was asked to; the text says why, to the model."""


@dataclass(frozen=True)
class Tool:
    """A tool of a world: what a model is told of it, and what a call does.

    ``parameters`` is a JSON schema of an object. ``run`` returns the text for the model, or raises
    ToolRefused. ``ends`` tells that a call that worked is the candidate's last word.
    """

    name: str
    description: str
    parameters: Mapping[str, JsonValue]
    run: Callable[[Mapping[str, JsonValue]], str] = field(repr=False)
    ends: bool = False


def run_tool(tool: Tool, arguments: Mapping[str, JsonValue]) -> tuple[str, bool]:
    """Run a tool; return its text and whether it worked. A mistake of the model's is told to it."""
    problem = problem_with(tool.parameters, arguments)
    if problem:
        return f"Error: {problem}. Nothing was done.", False
    try:
        return tool.run(arguments), True
    except ToolRefused as refused:
        return f"Error: {refused}", False


def problem_with(schema: Mapping[str, JsonValue], arguments: Mapping[str, JsonValue]) -> str:
    """Say what of some arguments does not fit the top of a schema; '' for nothing."""
    required = schema.get("required")
    for name in required if isinstance(required, list) else []:
        if name not in arguments:
            return f"the argument {name!r} is missing"
    return ""


def schema_of(tool: Tool) -> dict[str, JsonValue]:
    """Return a tool as OpenAI's API describes it."""
    return {
        "type": "function",
        "function": {
            "name": tool.name,
            "description": tool.description,
            "parameters": dict(tool.parameters),
        },
    }
