"""A scorecard as lines of a terminal: right without colour, at 80 columns and at 200.

What has no verdict comes first; a rate never stands without its counts; an undecided pair says in
words why. Names and reasons come from outside and are escaped here, and nowhere else.
"""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from pytest_modelbench.report.bars import LONGEST_BAR, SHORTEST_BAR, aligned, bar, scale
from pytest_modelbench.report.completion import asked_otherwise, what_to_run, whole_without
from pytest_modelbench.report.escape import escape
from pytest_modelbench.report.names import shown_names
from pytest_modelbench.report.numbers import (
    dollars,
    duration,
    money,
    plural,
    scores_in_words,
    tokens,
)
from pytest_modelbench.report.pairs import MIDP, Pair
from pytest_modelbench.report.remarks import row_remarks
from pytest_modelbench.report.resources import spend, used, wall
from pytest_modelbench.report.rows import Row
from pytest_modelbench.report.scorecard import Scorecard
from pytest_modelbench.report.verdicts import interval_methods, next_commands, verdict_notes
from pytest_modelbench.stats import (
    NO_ESTIMATE,
    Decision,
    format_interval,
    format_p,
    format_percent,
    format_points,
    format_points_interval,
)
from pytest_modelbench.words import BUILT_IN

NARROW = 60
"""Fewer columns than this are treated as so many."""

MOST_PAIRS = 15
"""With more pairs than this only those that are decided are shown, unless there is a baseline."""

MOST_LINES = 8
"""More candidates than this share one line of counts."""

MOST_COUNTS = 8

GLUE = "\N{NO-BREAK SPACE}"
"""Stands for a space at which no line is folded; escaped text has none."""

_BEFORE_A_COUNT = re.compile(r" (?=\d+(?:,|$))")
"""A count stays on the line of what it counts."""

SHORT = 24
"""A part of a list up to so many characters stays on one line."""


def render(
    card: Scorecard, width: int = 80, utf8: bool = True, *, compared: bool = False
) -> list[str]:
    """Return the summary of one pack, without trailing spaces; every line fits the width.

    ``compared``: two candidates were asked for, so that comparing them is no advice.
    """
    page = _Page(card, max(width, NARROW), utf8, compared=compared)
    lines = [
        *page.heading(),
        *page.completeness(),
        "",
        *page.table(),
        *page.method(),
        *page.pairs(),
        "",
        *page.details(),
    ]
    return [line.rstrip() for line in lines]


class _Page:
    def __init__(self, card: Scorecard, width: int, utf8: bool, *, compared: bool) -> None:
        self.card = card
        self.compared = compared
        self.width = width
        self.utf8 = utf8
        self.names: dict[str, str] = {}
        self.legend: dict[str, str] = {}
        # What the other columns leave, and no more than a line of a pair has room for.
        room = min(self._left_over(*self._columns()) + len("candidate"), width // 2 - 12)
        names = [row.candidate for row in card.rows]
        self.names, self.legend = shown_names(names, room, utf8=utf8)

    def heading(self) -> list[str]:
        title = f" modelbench: {self._text(self.card.grid.pack)} "
        lines = [title.center(self.width, "=")[: self.width]]
        if self.card.note:
            lines += self._wrapped("note", [self._text(self.card.note)])
        return lines

    def completeness(self) -> list[str]:
        card, grid = self.card, self.card.grid
        cases = len(card.cases)
        size = f"{plural(cases, 'case')} x {plural(grid.repeats, 'repeat')} x "
        size += f"{plural(len(card.rows), 'candidate')} = {plural(card.cells, 'cell')}"
        lines = [
            f"{size}     {plural(card.verdicts, 'verdict')}     {plural(card.faults, 'fault')}"
        ]
        if self.width < len(lines[0]):
            lines = self._folded(lines[0].replace("     ", "; "), "")
        missing = card.cells - card.verdicts
        if missing:
            told = f"INTERIM: {missing} of {card.cells} cells {_have(missing)} no verdict, "
            do = self._text(what_to_run(card))
            lines += self._folded(f"{told}so no scorecard. Run them: {do}", "")
        if card.stored:
            whole = "" if self.compared else whole_without(card)
            lines += self._wrapped("complete", [self._text(whole)] if whole else [])
            apart = asked_otherwise(card)
            lines += self._wrapped("apart", [self._text(apart)] if apart else [])
            notes = {r.candidate: r.notes for r in card.rows if {*r.notes} - {card.note}}
            told_notes = {
                name: {repr(note) if note else "none": n for note, n in found.items()}
                for name, found in notes.items()
            }
            lines += self._counts("notes", told_notes, "verdicts by note: ")
        faults = {row.candidate: row.faults for row in card.rows if row.faults}
        lines += self._counts("faults", faults)
        waiting = {row.candidate: row.waiting for row in card.rows if row.waiting}
        lines += self._counts("missing", waiting)
        for case, why in card.uncertified.items():
            lines += self._wrapped("excluded", [f"case {self._text(case)}: {self._text(why)}"])
        return lines

    def table(self) -> list[str]:
        if not self.card.rows:
            return ["no candidate"]
        heads, rows = self._columns()
        k = min(3, self.card.grid.repeats)
        left = self._left_over(heads, rows)
        if k > 1 and left >= 8:
            heads.insert(2, f"pass^{k}")
            for row, cells in zip(self.card.rows, rows, strict=True):
                cells.insert(2, format_percent(row.pass_hat.get(k)))
            left = self._left_over(heads, rows)
        if left >= SHORTEST_BAR + 2:
            size = min((left - 2) // 2 * 2 - 1, LONGEST_BAR)
            heads.insert(2, scale(size))
            for row, cells in zip(self.card.rows, rows, strict=True):
                cells.insert(2, bar(row.rate, row.interval, size, utf8=self.utf8))
        if self._left_over(heads, rows) >= len("  rank") and any(r.rank for r in self.card.rows):
            heads.append("rank")
            for row, cells in zip(self.card.rows, rows, strict=True):
                cells.append(row.shown_rank or NO_ESTIMATE)
        names = [self.names[row.candidate] for row in self.card.rows]
        return aligned(["candidate", *heads], [[n, *r] for n, r in zip(names, rows, strict=True)])

    def _columns(self) -> tuple[list[str], list[list[str]]]:
        """Return the headings and cells that stand at every width, names left out."""
        heads = ["passed", "rate [95%]", "$/try", "$/pass", "tokens", "med s"]
        rows = [
            [
                f"{row.passes}/{row.verdicts}",
                self._rate(row),
                money(row.cost_per_attempt) if row.asks_model else NO_ESTIMATE,
                _per_pass(row),
                tokens(row.tokens["input"].mean, row.tokens["output"].mean)
                if row.asks_model
                else NO_ESTIMATE,
                duration(row.seconds.value if row.seconds else None),
            ]
            for row in self.card.rows
        ]
        return heads, rows

    def method(self) -> list[str]:
        card = self.card
        lines = [f"  {short} is {self._text(name)}" for short, name in self.legend.items()]
        lines = [line for text in lines for line in self._folded(text, "    ")]
        if methods := interval_methods(card, self.names):
            unit = "the case is the unit, not the attempt"
            told = f"[95%]: {self._text(methods)}" + (f"; {unit}" if card.grid.repeats > 1 else "")
            lines += self._folded(f"  {told}.", "  ")
        if card.guesses:
            told = scores_in_words(card.guesses)
            lines += self._folded(f"  guessing gets: {self._text(told)}", "    ")
        for row in card.rows:
            for remark in row_remarks(row):
                told = f"  {self.names[row.candidate]}: {self._text(remark)}"
                lines += self._folded(told, "    ")
        return lines

    def pairs(self) -> list[str]:
        card = self.card
        if not card.pairs:
            return []
        test = "exact McNemar" if card.grid.repeats == 1 else "exact sign-flip"
        if any(pair.method == MIDP for pair in card.pairs):
            test = MIDP
        family = len(card.pairs)
        head = f"paired by case ({test}"
        head += f", Holm over {family}" if family > 1 else ""
        if card.complete and card.level != card.alpha:
            head += f", level {card.level:.2g} since the grid was resized after a look"
        head += "" if card.complete else f", interim level {card.level:g}"
        lines = ["", *self._folded(f"{head})", "  ")]
        shown = card.pairs
        if len(shown) > MOST_PAIRS and card.baseline is None:
            shown = tuple(pair for pair in shown if pair.better)
            rest = family - len(shown)
            lines += self._folded(
                f" {len(shown)} of {family} pairs are decided, and {rest} are not; all of them "
                "stand in the JSON and Markdown reports",
                "  ",
            )
        for pair in shown:
            lines += self._pair(pair)
        return lines

    def _pair(self, pair: Pair) -> list[str]:
        a, b = self.names[pair.a], self.names[pair.b]
        if not pair.cases:
            return self._folded(f" {a} - {b}: no case has all verdicts of both", "    ")
        apart = f"{format_points(pair.difference.value if pair.difference else None, 0)} pt"
        ends = format_points_interval(pair.difference.interval if pair.difference else None, 0)
        told = f" {a} - {b}  {_whole(f'{apart} {ends}')}"
        if pair.adjusted_p is not None and pair.decision is not Decision.AGREE:
            told += "  " + _whole(f"p {format_p(pair.adjusted_p, pair.level)}")
        if pair.better:
            told += f"  {self.names[pair.better]} BETTER"
        elif pair.decision is Decision.UNDECIDED:
            told += "  not yet" if pair.is_close(self.card.alpha) else "  undecided"
        notes = verdict_notes(pair, (a, b), self.card.alpha, complete=self.card.complete)
        glued = (f"    {_BEFORE_A_COUNT.sub(GLUE, note)}" for note in notes)
        return [line for text in (told, *glued) for line in self._folded(text, "    ")]

    def details(self) -> list[str]:
        card = self.card
        lines = self._counts("fails", {r.candidate: r.reasons for r in card.rows if r.reasons})
        checks = {row.candidate: row.failing_checks for row in card.rows if row.failing}
        lines += self._counts("checks", checks)
        lines += self._own_tests()
        acted = {row.candidate: _misbehaviour(row) for row in card.rows if _misbehaviour(row)}
        lines += self._counts("agent", acted, "attempts with ")
        measured = [row for row in card.rows if row.candidate not in BUILT_IN]
        if measured and card.cases and card.verdicts:
            told = f"{len(card.solved_by_all)} solved every time by all, "
            told += f"{len(card.solved_by_none)} by none"
            lines += self._wrapped("cases", [told, f"{len(card.cases)} counted", *self._excluded()])
        trust = sorted({str(row.trust) for row in card.rows if row.verdicts})
        boxes = sorted({box for row in card.rows for box in row.boxes})
        if trust:
            lines += self._wrapped("trust", [", ".join(trust)])
        if boxes:
            lines += self._wrapped("box", [self._text(", ".join(boxes))])
        lines += self._used()
        lines += self._wrapped("spend", [self._text(part) for part in spend(card)])
        lines += self._frontier()
        lines += self._old()
        for number, command in enumerate(next_commands(card, compared=self.compared)):
            lines += self._wrapped("" if number else "next", [self._text(command)])
        return lines

    def _own_tests(self) -> list[str]:
        lines: list[str] = []
        rows = [row for row in self.card.rows if row.own]
        for row in rows if len(rows) <= MOST_LINES else ():
            told = [f"{self._text(t)} {passed}/{of}" for t, (passed, of) in row.own_tests.items()]
            told[0] = f"{self.names[row.candidate]}: {told[0]}"
            lines += self._wrapped("" if lines else "tests", told)
        return lines

    def _used(self) -> list[str]:
        """Return what each candidate used; with many, only the table of the Markdown report has."""
        told = {row.candidate: used(row) for row in self.card.rows}
        told = {name: parts for name, parts in told.items() if parts}
        lines: list[str] = []
        if len(told) <= MOST_LINES:
            for name, parts in told.items():
                line = [f"{self.names[name]}: {parts[0]}", *parts[1:]]
                lines += self._wrapped("" if lines else "used", line)
        told_wall = wall(self.card)
        return lines + (self._wrapped("wall", [told_wall]) if told_wall else [])

    def _frontier(self) -> list[str]:
        """Return who is worth the price: only where there is a choice."""
        points = self.card.frontier
        priced = [row for row in self.card.rows if row.cost_per_attempt is not None]
        if not self.card.pairs or len(priced) < 2:
            return []
        parts = []
        for point in points:
            told = f"{self.names[point.candidate]} {dollars(point.usd)} a try"
            if point.alike:
                told += f" ({point.relation} {self.names[point.alike]}, which is cheaper)"
            parts.append(told)
        return self._wrapped("frontier", parts)

    def _excluded(self) -> list[str]:
        count = len(self.card.uncertified)
        return [f"{count} excluded"] if count else []

    def _old(self) -> list[str]:
        changed: dict[str, list[int]] = {}
        for old in self.card.old:
            if old.replaced:  # of no use any more; the file forms have them all
                continue
            parts = " and ".join(old.changed) or "version"
            found = changed.setdefault(f"{self._text(old.case)} ({parts} changed)", [0, 0])
            found[0] += old.passes
            found[1] += old.verdicts
        told = [f"{what} {passed} of {judged} passed" for what, (passed, judged) in changed.items()]
        if told:
            told[0] = f"not counted above: {told[0]}"
        return self._wrapped("old", told)

    def _rate(self, row: Row) -> str:
        if row.rate is None:
            return NO_ESTIMATE
        return f"{format_percent(row.rate)} {format_interval(row.interval)}"

    def _left_over(self, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
        return self.width - len(
            aligned(
                ["candidate", *heads],
                [
                    [self.names.get(row.candidate, ""), *cells]
                    for row, cells in zip(self.card.rows, rows, strict=True)
                ],
            )[0]
        )

    def _counts(
        self, label: str, by_name: Mapping[str, Mapping[str, int]], of: str = ""
    ) -> list[str]:
        """Return a line for each candidate: its total, then each count, the most frequent first.

        Many candidates share one line, and each has its own in the Markdown report. ``of`` says
        what is counted, where counts overlap and so have no total.
        """
        told = [(self.names[name], counts) for name, counts in by_name.items()]
        if len(told) > MOST_LINES:
            together: Counter[str] = Counter()
            for counts in by_name.values():
                together.update(counts)
            told = [(plural(len(told), "candidate"), dict(together.most_common()))]
        lines: list[str] = []
        for name, counts in told:
            parts = [f"{self._text(what)} {count:,}" for what, count in counts.items()]
            if len(parts) > MOST_COUNTS:
                parts[MOST_COUNTS:] = [f"{len(parts) - MOST_COUNTS} more kinds"]
            total = "" if len(counts) == 1 or of else f" {sum(counts.values()):,}"
            lines += self._wrapped(
                "" if lines else label, [f"{name}{total}: {of}{parts[0]}", *parts[1:]]
            )
        return lines

    def _wrapped(self, label: str, parts: Iterable[str]) -> list[str]:
        told = ", ".join(_whole(part) for part in parts)
        return self._folded(f"{label:9}{told}", " " * 11) if told else []

    def _folded(self, text: str, indent: str) -> list[str]:
        """Fold at spaces, and within a word only where it is longer than a line."""
        lines = textwrap.wrap(
            text,
            self.width,
            subsequent_indent=indent,
            drop_whitespace=True,
            replace_whitespace=False,
            break_on_hyphens=False,
        )
        return [line.replace(GLUE, " ") for line in lines]

    def _text(self, text: str) -> str:
        return escape(text, utf8=self.utf8)


def _whole(text: str) -> str:
    return text.replace(" ", GLUE) if len(text) <= SHORT else text


def _have(count: int) -> str:
    return "has" if count == 1 else "have"


def _per_pass(row: Row) -> str:
    if not row.asks_model:
        return NO_ESTIMATE
    if row.cost_per_pass is None or row.verdicts == 0:
        return money(None)
    return NO_ESTIMATE if row.cost_per_pass.value is None else money(row.cost_per_pass.value)


def _misbehaviour(row: Row) -> dict[str, int]:
    """Return how many attempts showed each misbehaviour; turns are none."""
    return {name.replace("_", " "): n for name, n in row.misbehaved.items() if name != "turns"}
