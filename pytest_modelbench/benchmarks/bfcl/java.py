"""Values written as Java source text, read as BFCL reads them.

The patterns are those of upstream (Apache-2.0): what they take and what they miss is the rule.
Elements are split at every comma, within quotes too; text that is not of the declared form stays
text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

TYPE_ERROR = "type_error:java"
LISTS = ("Array", "ArrayList")
TYPES: Mapping[str, type] = {
    "byte": int,
    "short": int,
    "integer": int,
    "long": int,
    "float": float,
    "double": float,
    "boolean": bool,
    "char": str,
    "String": str,
    "any": str,
    "Array": list,
    "ArrayList": list,
    "Queue": list,
    "Stack": list,
    "Set": set,
    "HashMap": dict,
    "Hashtable": dict,
}
UNREAD = ("Set", "Hashtable", "Queue", "Stack")

_WHOLE = re.compile(r"^-?\d+$")
_LONG = re.compile(r"^-?\d+[lL]$")
_DOUBLE = re.compile(r"^-?\d+(\.\d+)?([eE][+-]?\d+)?$")
_FLOAT = re.compile(r"^-?\d+(\.\d+)?([eE][+-]?\d+)?[fF]$")
_ARRAY = re.compile(r"new\s+\w+\[\]\s*\{(.*?)\}")
_AS_LIST = re.compile(r"new\s+ArrayList<\w*>\(Arrays\.asList\((.+?)\)\)")
_LIST_BRACES = re.compile(r"new\s+ArrayList<\w*>\(\)\s*\{\{\s*(.+?)\s*\}\}", re.DOTALL)
_EMPTY_LIST = re.compile(r"new\s+ArrayList<\w*>\(\)")
_MAP_BRACES = re.compile(r"new\s+HashMap<.*?>\s*\(\)\s*\{\s*\{?\s*(.*?)\s*\}?\s*\}", re.DOTALL)
_EMPTY_MAP = re.compile(r"new\s+HashMap<.*?>\s*\(\)")


def read(text: str, declared: str, item_type: str | None = None) -> object:
    """Return the value of a source text; NotImplementedError for a type that upstream cannot read.

    ``item_type`` is the declared type of a list's items.
    """
    if declared in UNREAD:
        raise NotImplementedError(f"BFCL has no reading of the Java type {declared}")
    if declared in ("byte", "short", "integer"):
        return int(text) if _WHOLE.match(text) else text
    if declared == "long":
        return int(text.strip()[:-1]) if _LONG.match(text) else text
    if declared == "float":
        return float(text.strip()[:-1]) if _FLOAT.match(text) else text
    if declared == "double":
        return float(text) if _DOUBLE.match(text) else text
    if declared == "boolean":
        return text == "true" if text in ("true", "false") else text
    if declared == "Array":
        return _array(text, item_type)
    if declared == "ArrayList":
        return _array_list(text, item_type)
    if declared == "HashMap":
        return _hash_map(text)
    return text  # String and any; a char keeps its quotes


def _array(text: str, item_type: str | None) -> object:
    found = _ARRAY.search(text)
    if found is None:
        return text
    items = [item.strip() for item in found[1].split(",") if item.strip()]
    return [read(item, item_type) if item_type else _untyped(item) for item in items]


def _array_list(text: str, item_type: str | None) -> object:
    if found := _AS_LIST.search(text):
        return [_list_item(item.strip(), item_type) for item in found[1].split(",")]
    if found := _LIST_BRACES.search(text):
        return [_list_item(one.strip(), item_type) for one in re.findall(r"add\((.+?)\)", found[1])]
    return [] if _EMPTY_LIST.search(text) else text


def _list_item(text: str, item_type: str | None) -> object:
    """Return one item; of a text or a char, unlike in an array, the first and last sign go."""
    if item_type in ("char", "String"):
        return text[1:-1]
    return read(text, item_type) if item_type else _untyped(text)


def _hash_map(text: str) -> object:
    if found := _MAP_BRACES.search(text):
        pairs = re.findall(r"put\(\"(.*?)\",\s*(.*?)\)", found[1])
        return {key: _untyped(value.strip()) for key, value in pairs}
    return {} if _EMPTY_MAP.search(text) else text


def _untyped(text: str) -> object:
    """Return the value of a literal whose type is not declared."""
    if text in ("true", "false"):
        return text == "true"
    if text.startswith('"') and text.endswith('"'):
        return text[1:-1]
    if _LONG.match(text):
        return int(text[:-1])
    if _FLOAT.match(text):
        return float(text[:-1])
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
