"""Rules of gates: what a user declares, in pyproject.toml or as one short text.

[tool.modelbench.gates.quality]
kind = "not-worse-by"
candidate = "local-coder"
baseline = "hosted"
margin = 5

--modelbench-gate not-worse-by:5:local-coder:baseline=hosted
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from pytest_modelbench.errors import UsageProblem

TABLE = "tool.modelbench.gates"
OPTION = "--modelbench-gate"
STORED = ".json"
"""A baseline that ends so is a stored scorecard, ``FILE.json`` or ``FILE.json#CANDIDATE``."""


class Kind(StrEnum):
    """What a gate asks."""

    FLOOR = "floor"
    NOT_WORSE_BY = "not-worse-by"
    REGRESSION = "regression"
    SUPERIORITY = "superiority"
    COST_PER_PASS = "cost-per-pass"
    MEDIAN_TIME = "median-time"

    @property
    def compares(self) -> bool:
        """Tell whether it needs a baseline."""
        return self in (Kind.NOT_WORSE_BY, Kind.REGRESSION, Kind.SUPERIORITY)

    @property
    def has_limit(self) -> bool:
        """Tell whether it needs a number."""
        return self not in (Kind.REGRESSION, Kind.SUPERIORITY)


@dataclass(frozen=True)
class Rule:
    """One gate for one candidate.

    ``limit`` is a share for a floor and a margin (5 points are 0.05), dollars for a cost, seconds
    for a time, None where the kind has none. ``pack`` empty: every pack of the run. ``required``
    rules must be about a candidate of the run.
    """

    name: str
    kind: Kind
    candidate: str
    limit: float | None = None
    baseline: str = ""
    pack: str = ""
    alpha: float = 0.05
    on: str = "passes"
    interval: str = "newcombe"
    source: str = ""
    required: bool = False

    @property
    def text(self) -> str:
        """Return the rule as one text, without its name and where it stands: what is recorded."""
        parts = [str(self.kind), self.candidate]
        if self.limit is not None:
            number = self.limit * (100 if self.kind is Kind.NOT_WORSE_BY else 1)
            parts.append(f"{number:.10g}")
        defaults = {"baseline": "", "pack": "", "alpha": 0.05, "on": "passes"}
        defaults["interval"] = "newcombe"
        for key, default in defaults.items():
            value = getattr(self, key)
            if value != default:
                parts.append(f"{key}={value}")
        return ":".join(parts)

    @property
    def stored_baseline(self) -> tuple[str, str] | None:
        """Return file and candidate (or empty) of a stored baseline; None for one of the run."""
        path, _, name = self.baseline.partition("#")
        return (path, name) if path.endswith(STORED) else None


def read_rules(pyproject: Path, baseline: str = "") -> tuple[Rule, ...]:
    """Read ``[tool.modelbench.gates]``; none where there is no such file or table.

    ``baseline`` stands in where a rule that compares names none.

    Raises:
        UsageProblem: a gate cannot be understood; with file, line and what to write instead.
    """
    if not pyproject.is_file():
        return ()
    text = pyproject.read_text(encoding="utf-8")
    try:
        tables = tomllib.loads(text).get("tool", {}).get("modelbench", {}).get("gates", {})
    except tomllib.TOMLDecodeError as error:
        raise UsageProblem(f"{pyproject}: not TOML: {error}") from error
    if not isinstance(tables, dict) or not all(isinstance(t, dict) for t in tables.values()):
        raise UsageProblem(f"{pyproject}: [{TABLE}] has a table a gate: [{TABLE}.NAME]")
    rules: list[Rule] = []
    for name, table in tables.items():
        source = f"{pyproject.name}:{_line(text, name)}"
        try:
            rules += _of_table(name, table, source, baseline)
        except ValueError as error:
            raise UsageProblem(f"{source}: gate {name}: {error}") from error
    return tuple(rules)


def parse_rule(text: str, baseline: str = "") -> Rule:
    """Read one rule from its short text; UsageProblem with examples for what is none."""
    try:
        return _of_text(text, baseline)
    except ValueError as error:
        raise UsageProblem(
            f"{OPTION} {text}: {error}; such as floor:NAME:0.6, "
            "not-worse-by:5:NAME:baseline=OTHER, cost-per-pass:NAME:0.05"
        ) from error


_KEYS = ("baseline", "pack", "alpha", "on", "interval")
_KEY = re.compile(rf":({'|'.join(_KEYS)})=")


def _of_text(text: str, baseline: str) -> Rule:
    word, _, rest = text.partition(":")
    kind = _kind(word)
    # Names of candidates may hold colons: only known keys and a number end them.
    head, *options = _KEY.split(rest)
    given: dict[str, object] = dict(zip(options[::2], options[1::2], strict=True))
    if "alpha" in given:
        given["alpha"] = _number(str(given["alpha"]), "alpha")
    if kind.has_limit:
        first, last = head.partition(":"), head.rpartition(":")
        ways = [(first[2], first[0]), (last[0], last[2])]
        if kind is not Kind.NOT_WORSE_BY:
            ways.reverse()
        found = [(name, limit) for name, limit in ways if name and _is_number(limit)]
        if not found:
            raise ValueError(f"{kind} needs a candidate and a number")
        head, limit = found[0]
        given["margin" if kind is Kind.NOT_WORSE_BY else "limit"] = _number(limit, "the limit")
    return replace(
        _rule(text, kind, head, given, "the command line", baseline), name=text, required=True
    )


def _of_table(name: str, table: Mapping[str, object], source: str, baseline: str) -> list[Rule]:
    given = dict(table)
    kind = _kind(given.pop("kind", ""))
    one, several = given.pop("candidate", None), given.pop("candidates", None)
    names = [one] if several is None else several
    if (one is None) is (several is None) or not isinstance(names, list):
        raise ValueError('it needs candidate = "NAME" or candidates = ["NAME", …]')
    rules = []
    for candidate in names:
        if not isinstance(candidate, str) or not candidate:
            raise ValueError(f"{candidate!r} is no name of a candidate")
        title = name if len(names) == 1 else f"{name} ({candidate})"
        rules.append(_rule(title, kind, candidate, given, source, baseline))
    return rules


def _rule(
    name: str,
    kind: Kind,
    candidate: str,
    given: Mapping[str, object],
    source: str,
    baseline: str,
) -> Rule:
    word = "margin" if kind is Kind.NOT_WORSE_BY else "limit"
    allowed = {"pack", "alpha", *([word] if kind.has_limit else [])}
    allowed |= {"baseline"} if kind.compares else set()
    allowed |= {"on"} if kind.compares or kind is Kind.FLOOR else set()
    allowed |= {"interval"} if kind is Kind.NOT_WORSE_BY else set()
    for key in given:
        if key not in allowed:
            raise ValueError(f"{kind} has no {key!r}; it has {', '.join(sorted(allowed))}")
    if not candidate:
        raise ValueError("it names no candidate")
    rule = Rule(
        name=name,
        kind=kind,
        candidate=candidate,
        limit=_limit(kind, given.get(word)) if kind.has_limit else None,
        baseline=_text(given, "baseline", baseline if kind.compares else ""),
        pack=_text(given, "pack", ""),
        alpha=_share(given.get("alpha", 0.05), "alpha"),
        on=_choice(given, "on", ("passes", "reward")),
        interval=_choice(given, "interval", ("newcombe", "tango")),
        source=source,
    )
    if kind.compares and not rule.baseline:
        raise ValueError("it needs a baseline: a candidate of the run, or a scorecard FILE.json")
    if rule.alpha >= 0.5:
        raise ValueError(f"alpha = {rule.alpha:g} decides nothing; 0.05 is usual")
    if rule.baseline == rule.candidate:
        raise ValueError(f"{rule.candidate} is compared with itself")
    if rule.interval == "tango" and rule.on == "reward":
        raise ValueError("Tango's interval is for passes")
    return rule


def _kind(word: object) -> Kind:
    try:
        return Kind(str(word))
    except ValueError:
        raise ValueError(f"there is no kind {word!r}: {', '.join(Kind)}") from None


def _limit(kind: Kind, value: object) -> float:
    if kind is Kind.NOT_WORSE_BY:
        if not _is_number(value) or not 0 < float(str(value)) < 100:
            raise ValueError(f"margin = {value!r} is not a number of points between 0 and 100")
        return float(str(value)) / 100
    if kind is Kind.FLOOR:
        return _share(value, "limit")
    if not _is_number(value) or not float(str(value)) > 0:
        unit = "dollars a pass" if kind is Kind.COST_PER_PASS else "seconds"
        raise ValueError(f"limit = {value!r} is not a positive number of {unit}")
    return float(str(value))


def _share(value: object, name: str) -> float:
    if not _is_number(value) or not 0 < float(str(value)) < 1:
        raise ValueError(f"{name} = {value!r} is not a share between 0 and 1, such as 0.6")
    return float(str(value))


def _is_number(value: object) -> bool:
    if isinstance(value, bool):
        return False
    try:
        return math.isfinite(float(str(value)))
    except ValueError:
        return False


def _number(text: str, name: str) -> float:
    if not _is_number(text):
        raise ValueError(f"{name} {text!r} is no number")
    return float(text)


def _text(given: Mapping[str, object], key: str, default: str) -> str:
    value = given.get(key, default)
    if not isinstance(value, str):
        raise ValueError(f"{key} = {value!r} is no text")
    return value


def _choice(given: Mapping[str, object], key: str, words: tuple[str, ...]) -> str:
    value = _text(given, key, words[0])
    if value not in words:
        raise ValueError(f"{key} = {value!r} is none of {', '.join(words)}")
    return value


def _line(text: str, name: str) -> int:
    """Return the line at which a gate's table begins; 1 where it is written another way."""
    quoted = rf"(?:{re.escape(name)}|\"{re.escape(name)}\"|'{re.escape(name)}')"
    pattern = rf"(?m)^\s*\[\s*{re.escape(TABLE)}\.{quoted}\s*\]"
    if (found := re.search(pattern, text)) is None:
        found = re.search(rf"(?m)^\s*{quoted}\s*[.=]", text)
    return text.count("\n", 0, found.end()) + 1 if found else 1
