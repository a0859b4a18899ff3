"""Values written as JavaScript source text, read as BFCL reads them.

The patterns are those of upstream (Apache-2.0): what they take and what they miss is the rule.
Elements are split at every comma, within quotes too; text that is not of the declared form stays
text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

TYPE_ERROR = "type_error:js"
LISTS = ("array",)
TYPES: Mapping[str, type] = {
    "String": str,
    "integer": int,
    "Bigint": int,
    "float": float,
    "Boolean": bool,
    "array": list,
    "dict": dict,
    "any": str,
}

_WHOLE = re.compile(r"^-?\d+$")
_NUMBER = re.compile(r"^-?\d+(\.\d+)?$")
_BIG = re.compile(r"^-?\d+n$")
_ARRAY = re.compile(r"\[(.*?)\]|\bnew\s+Array\((.*?)\)")
_ARRAY_OF_ARRAYS = re.compile(
    r"\[\s*\[.*?\]\s*(,\s*\[.*?\]\s*)*\]|\bnew\s+Array\(\s*\[.*?\]\s*(,\s*\[.*?\]\s*)*\)"
)
_OBJECT = re.compile(r"\{(.*?)\}")
_PAIR = re.compile(r"([^:]+):\s*(.*?)(?:,\s*(?=[^,]+:)|$)")


def read(text: str, declared: str, item_type: str | None = None) -> object:
    """Return the value of a source text. ``item_type`` is the declared type of a list's items."""
    if declared == "String":
        return text[1:-1] if _is_quoted(text) else text
    if declared == "integer":
        return int(text) if _WHOLE.match(text) else text
    if declared == "float":
        return float(text) if _NUMBER.match(text) else text
    if declared == "Bigint":
        return int(text.strip()[:-1]) if _BIG.match(text) else text
    if declared == "Boolean":
        return text == "true" if text in ("true", "false") else text
    if declared == "array":
        return _array(text.strip(), item_type)
    if declared == "dict":
        return _object(text.strip())
    return text


def _array(text: str, item_type: str | None) -> object:
    if found := _ARRAY_OF_ARRAYS.match(text):
        return [_inner_array(one, at) for at, one in enumerate(re.findall(r"\[(.*?)\]", found[0]))]
    found = _ARRAY.match(text)
    if found is None:
        return text
    within = next((group for group in found.groups() if group is not None), "").strip()
    items = [item.strip() for item in within.split(",")] if within else []
    return [read(item, item_type, _below(item)) if item_type else _untyped(item) for item in items]


def _inner_array(text: str, at: int) -> list[object]:
    text = text.strip()
    if at == 0:
        text = text.removeprefix("[")
    return [_untyped(item) for item in text.split(",")]


def _below(item: str) -> str | None:
    """Return the type of the items of a list's item, where it begins with a quote."""
    return "String" if item.startswith(("'", '"')) else None


def _object(text: str) -> object:
    if text == "{}":
        return {}
    found = _OBJECT.match(text)
    if found is None:
        return text
    return {
        key.strip().strip("'\""): _member(value.strip()) for key, value in _PAIR.findall(found[1])
    }


def _member(text: str) -> object:
    if text.startswith("[") and text.endswith("]"):
        return _array(text, None)
    if text.startswith("{") and text.endswith("}"):
        return _object(text)
    return _untyped(text.strip("'\""))


def _untyped(text: str) -> object:
    """Return the value of a literal whose type is not declared."""
    text = text.strip()
    if text in ("true", "false"):
        return text == "true"
    if _is_quoted(text):
        return text[1:-1]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _is_quoted(text: str) -> bool:
    return any(text.startswith(quote) and text.endswith(quote) for quote in ('"', "'"))
