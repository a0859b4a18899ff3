"""When a field of an answer is right, by the rule that its column has."""

from __future__ import annotations

import datetime
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from pytest_modelbench.benchmarks.tables.checking import Checks

RULES_VERSION = "1"
TOLERANCE = Decimal("0.005")


class RuleProblem(ValueError):
    """A rule is not written as one of those that there are."""


@dataclass(frozen=True)
class Rule:
    """How one field is compared.

    ``share`` takes gold and answer and returns the share that is right, 1 for a right one. It
    raises ValueError for a gold that the rule cannot read, and never for an answer.
    """

    text: str
    share: Callable[[str, object], float]
    gradable: Callable[[str], bool]
    wrong: Callable[[str], str]

    def right(self, gold: str, answer: object) -> bool:
        """Tell whether an answer is right."""
        return self.share(gold, answer) >= 1.0


def parse_rule(text: str, field: str = "", checks: Checks | None = None) -> Rule:
    """Return the rule of a text; RuleProblem names all that there are.

    ``check`` is the function of the field's name in ``checks``, ``check:NAME`` another one.
    """
    kind, _, rest = text.partition(":")
    if kind == "check" and checks is not None:
        share = checks.named(rest or re.sub(r"\W", "_", field))
        return Rule(text, share, lambda gold: bool(folded(gold)), _other_text)
    if kind in _PLAIN and not rest:
        return _PLAIN[kind]
    if kind == "number":
        return _number_rule(text, TOLERANCE if not rest else _tolerance(rest))
    if kind == "ordinal":
        return _ordinal_rule(text, [folded(one) for one in rest.split("<")])
    known = "exact, ci, number, number:TOLERANCE, set, date, ordinal:LOW<MIDDLE<HIGH, check:NAME"
    raise RuleProblem(f"{text!r} is no rule; known: {known}")


COMPARISONS = 200_000
"""At most about so many are made to find the best guess; all outcomes are tried below 450."""


def best_guess(rule: Rule, golds: Sequence[str]) -> str:
    """Return the outcome that is right for most of the golds by the rule; there has to be one.

    Where there are too many outcomes to try each, the commonest are tried.
    """
    counts = Counter(golds)
    tried = counts.most_common(max(1, COMPARISONS // len(counts)))

    def hits(guess: str) -> int:
        return sum(number for gold, number in counts.items() if rule.right(gold, guess))

    return max((text for text, _ in tried), key=hits)


def folded(value: object) -> str:
    """Return a text with its spaces folded to one each and none at its ends, letters composed."""
    if isinstance(value, bool):
        value = "true" if value else "false"
    return " ".join(unicodedata.normalize("NFC", "" if value is None else str(value)).split())


def read_number(value: object) -> Decimal | None:
    """Return a number as people write it; None for what is none.

    Currency signs, apostrophes and spaces are dropped. Of ``.`` and ``,`` the last is the decimal
    sign; one that occurs more than once is not, and neither is a single ``,`` before three digits.
    """
    if isinstance(value, bool):
        return None
    text = str(value) if isinstance(value, int | float | str) else ""
    text = re.sub(r"[\s'’€$£¥₣]|\b(?:EUR|USD|GBP|CHF)\b", "", text).replace("−", "-")
    if not re.fullmatch(r"[+-]?[\d.,]*\d[\d.,]*(?:[eE][+-]?\d{1,3})?", text):
        return None
    point, comma = text.rfind("."), text.rfind(",")
    if point >= 0 and comma >= 0:
        text = text.replace("," if point > comma else ".", "").replace(",", ".")
    elif comma >= 0:
        thousands = text.count(",") > 1 or re.search(r",\d{3}$", text) is not None
        text = text.replace(",", "" if thousands else ".")
    elif text.count(".") > 1:
        text = text.replace(".", "")
    try:
        return Decimal(text)
    except InvalidOperation:
        return None


def read_date(value: object) -> datetime.date | None:
    """Return a date written as ISO or as day.month.year; None for what is none."""
    text = folded(value)
    iso = re.fullmatch(r"(\d{4})-(\d{1,2})-(\d{1,2})(?:[T ][\d:.]+Z?)?", text)
    local = re.fullmatch(r"(\d{1,2})\.(\d{1,2})\.(\d{4})", text)
    if iso:
        year, month, day = map(int, iso.groups())
    elif local:
        day, month, year = map(int, local.groups())
    else:
        return None
    try:
        return datetime.date(year, month, day)
    except ValueError:
        return None


def read_set(value: object) -> frozenset[str]:
    """Return a list, or a text split at ``,``, ``;`` and ``|``, as a set, capitals aside."""
    parts = value if isinstance(value, list | tuple) else re.split(r"[,;|]", folded(value))
    return frozenset(one for part in parts if (one := folded(part).casefold()))


def _exact(gold: str, answer: object) -> float:
    if isinstance(answer, int | float) and not isinstance(answer, bool):
        try:
            return float(Decimal(folded(gold)) == Decimal(str(answer)))
        except InvalidOperation:
            return 0.0
    return float(folded(gold) == folded(answer))


def _number_rule(text: str, tolerance: Decimal) -> Rule:
    def share(gold: str, answer: object) -> float:
        wanted, found = read_number(gold), read_number(answer)
        if wanted is None:
            raise ValueError(f"{gold!r} is no number")
        return float(found is not None and abs(wanted - found) <= tolerance)

    def wrong(gold: str) -> str:
        number = read_number(gold) or Decimal(0)
        # Further than the tolerance, and as far as the number is large: 1e100 + 1 is 1e100.
        return str(number + max(abs(number), 10 * tolerance + 1))

    return Rule(text, share, lambda gold: read_number(gold) is not None, wrong)


def _tolerance(text: str) -> Decimal:
    number = read_number(text)
    if number is None or number < 0:
        raise RuleProblem(f"the tolerance {text!r} is no number of 0 or more")
    return number


def _ordinal_rule(text: str, levels: list[str]) -> Rule:
    places = {level.casefold(): place for place, level in enumerate(levels)}
    if len(places) < 2 or len(places) < len(levels) or "" in places:
        raise RuleProblem(f"{text!r} needs two levels or more, all different: ordinal:LOW<HIGH")

    def share(gold: str, answer: object) -> float:
        wanted = places.get(folded(gold).casefold())
        found = places.get(folded(answer).casefold())
        if wanted is None:
            raise ValueError(f"{gold!r} is none of {', '.join(levels)}")
        return 0.0 if found is None else 1.0 - abs(wanted - found) / (len(levels) - 1)

    def wrong(gold: str) -> str:
        return levels[1] if places.get(folded(gold).casefold()) == 0 else levels[0]

    return Rule(text, share, lambda gold: folded(gold).casefold() in places, wrong)


def _date(gold: str, answer: object) -> float:
    wanted = read_date(gold)
    if wanted is None:
        raise ValueError(f"{gold!r} is no date")
    return float(read_date(answer) == wanted)


def _other_date(gold: str) -> str:
    return str((read_date(gold) or datetime.date(2000, 1, 1)) + datetime.timedelta(days=1))


def _other_text(gold: str) -> str:
    text = folded(gold)
    return str(int(text) + 1) if re.fullmatch(r"[1-9]\d{0,17}", text) else f"not {text}"


_PLAIN: Mapping[str, Rule] = {
    "exact": Rule("exact", _exact, lambda gold: bool(folded(gold)), _other_text),
    "ci": Rule(
        "ci",
        lambda gold, answer: float(folded(gold).casefold() == folded(answer).casefold()),
        lambda gold: bool(folded(gold)),
        _other_text,
    ),
    "number": _number_rule("number", TOLERANCE),
    "set": Rule(
        "set",
        lambda gold, answer: float(read_set(gold) == read_set(answer)),
        lambda gold: bool(read_set(gold)),
        lambda gold: f"{gold}; something else",
    ),
    "date": Rule("date", _date, lambda gold: read_date(gold) is not None, _other_date),
}
