"""The answer that a record's gold describes, written as a model would have to send it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pydantic import JsonValue

from pytest_modelbench.benchmarks.bfcl.rules import Language, judge_value

Calls = tuple[tuple[str, Mapping[str, JsonValue]], ...]


def gold_calls(
    functions: Sequence[Mapping[str, JsonValue]],
    gold: Sequence[Mapping[str, JsonValue]],
    language: Language,
) -> Calls:
    """Return one call a gold entry, of the first acceptable values that the rules accept.

    A parameter that may be left out is, unless the schema requires it. Where no way of writing a
    value is accepted, the first is taken: then the rules do not accept their own gold.
    """
    described = {function["name"]: function for function in functions}
    made = []
    for entry in gold:
        ((name, options),) = entry.items()
        function = described.get(name, functions[0])
        parameters = _object(function.get("parameters"))
        schema, required = _object(parameters.get("properties")), parameters.get("required")
        must = required if isinstance(required, list) else []
        made.append(
            (
                name,
                {
                    key: _value(_object(schema.get(key)), acceptable, language)
                    for key, acceptable in _object(options).items()
                    if isinstance(acceptable, list) and ("" not in acceptable or key in must)
                },
            )
        )
    return tuple(made)


def _value(
    schema: Mapping[str, JsonValue], acceptable: Sequence[JsonValue], language: Language
) -> JsonValue:
    options = [one for one in acceptable if one != ""] or list(acceptable)
    ways = [way for one in options for way in _ways(one, schema, language)]
    for way in ways:
        if schema and judge_value(schema, way, list(acceptable), language).valid:
            return way
    return ways[0] if ways else ""


def _ways(
    option: JsonValue, schema: Mapping[str, JsonValue], language: Language
) -> Iterator[JsonValue]:
    """Yield ways in which a model may write an acceptable value."""
    plain = _plain(option)
    if language is Language.PYTHON:
        yield plain
        return
    declared = str(schema.get("type", ""))
    yield _source(plain, declared, language)
    if isinstance(plain, str):
        yield f'"{plain}"'
    if isinstance(plain, list):
        quoted, bare = ", ".join(map(_quoted, plain)), ", ".join(map(_bare, plain))
        for items in (quoted, bare):
            yield f"new Object[]{{{items}}}"
            yield f"new ArrayList<>(Arrays.asList({items}))"
            yield f"[{items}]"
    yield _bare(plain)


def _plain(option: JsonValue) -> JsonValue:
    """Return an option with the first acceptable value in place of each list within an object."""
    if isinstance(option, dict):
        found: dict[str, JsonValue] = {}
        for key, values in option.items():
            kept = [one for one in values if one != ""] if isinstance(values, list) else [values]
            if kept and not (isinstance(values, list) and "" in values):
                found[key] = kept[0]
        return found
    if isinstance(option, list):
        return [_plain(one) if isinstance(one, dict) else one for one in option]
    return option


_SUFFIXES = {"long": "L", "float": "f", "Bigint": "n"}


def _source(value: JsonValue, declared: str, language: Language) -> str:
    """Return a value as source text of its declared type."""
    if isinstance(value, bool) or not isinstance(value, int | float | list | dict):
        return _bare(value)
    if isinstance(value, int | float):
        java_only = declared == "float" and language is not Language.JAVA
        return f"{value}" + ("" if java_only else _SUFFIXES.get(declared, ""))
    if isinstance(value, list):
        items = ", ".join(map(_quoted, value))
        if language is Language.JAVASCRIPT:
            return f"[{items}]"
        if declared == "Array":
            return f"new Object[]{{{', '.join(map(_bare, value))}}}"
        return f"new ArrayList<>(Arrays.asList({items}))"
    if language is Language.JAVASCRIPT:
        return "{" + ", ".join(f"{key}: {_quoted(one)}" for key, one in value.items()) + "}"
    puts = " ".join(f'put("{key}", {_quoted(one)});' for key, one in value.items())
    return f"new HashMap<String, Object>() {{{{ {puts} }}}}"


def _bare(value: JsonValue) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _quoted(value: JsonValue) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_quoted, value)) + "]"
    return f'"{value}"' if isinstance(value, str) else _bare(value)


def _object(value: JsonValue | object) -> Mapping[str, JsonValue]:
    return value if isinstance(value, dict) else {}
