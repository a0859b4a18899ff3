"""Read results: stream every line of every file into an ``Index``, and never change a file."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from pytest_modelbench.errors import StoreProblem
from pytest_modelbench.parsing import parse
from pytest_modelbench.store.entry import Detail, Digests, Entry, Origin, Spent
from pytest_modelbench.store.heads import header_of
from pytest_modelbench.store.index import Damage, Index, RunHeader
from pytest_modelbench.store.layout import open_results, quoted, results_files
from pytest_modelbench.store.pause import collector_paused
from pytest_modelbench.words import SCHEMA, Outcome, Role, Stage, Trust


def read(
    root: Path,
    packs: Collection[str] | None = None,
    candidates: Collection[str] | None = None,
    *,
    details: bool = False,
) -> Index:
    """Index what is stored below ``root``, or that of some packs and candidates.

    ``details`` fills ``Entry.detail``, for a report. What cannot be used stands in
    ``Index.damages``, for the caller to show; everything else counts.

    Raises:
        StoreProblem: a line has a schema version that this program does not know.
    """
    index = Index()
    reader = _Reader(index, details)
    with collector_paused():
        for path in results_files(root, packs, candidates):
            reader.read(path)
    return index


def read_headers(
    root: Path, packs: Collection[str] | None = None, candidates: Collection[str] | None = None
) -> list[RunHeader]:
    """Return what each file says that its run declared, without reading its tries.

    A file whose header is damaged declares what it holds. What cannot be used is for ``read`` to
    tell.
    """
    headers = []
    for path in results_files(root, packs, candidates):
        with open_results(path) as file:
            header = next((found for line in file if (found := _headed(line, path))), None)
        if isinstance(header, RunHeader):
            headers.append(header)
        elif header is not None:
            headers += _held(path)
    return headers


def is_all(index: Index, root: Path, packs: Collection[str] | None = None) -> bool:
    """Tell whether an index that ``read`` made of some packs is still all that is stored."""
    return index.sizes == {path: path.stat().st_size for path in results_files(root, packs)}


class _Reader:
    """Turn lines into entries. Strings and digests that many lines share are kept once."""

    def __init__(self, index: Index, details: bool) -> None:
        self._index = index
        self._details = details
        self._strings: dict[str, str] = {"": ""}
        self._rewards: dict[float, float] = {}
        self._digests: dict[tuple[str, str, str, str], Digests] = {}
        self._failing: dict[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]] = {}
        self._counts: dict[tuple[tuple[str, int], ...], Mapping[str, int]] = {}
        self._origins: dict[tuple[str, ...], Origin] = {}
        self._misplaced: set[tuple[str, ...]] = set()

    def read(self, path: Path) -> None:
        offset = 0
        number = 0
        take = self._take
        self._origins.clear()
        self._misplaced.clear()
        with open_results(path) as file:
            for line in file:
                number += 1
                try:
                    take(_parsed(line), path, offset, number)
                except (ValueError, TypeError, KeyError, AttributeError) as error:
                    if line.strip():
                        self._damaged(path, number, line, error)
                offset += len(line)
        self._index.sizes[path] = offset

    # Any: JSON that no model has checked; what is used of it is checked here, line by line.
    def _take(self, raw: dict[str, Any], path: Path, offset: int, number: int) -> None:
        if not isinstance(raw, dict):
            raise TypeError("it is not a JSON object")
        if raw["schema"] != SCHEMA:
            raise StoreProblem(
                f"schema version {raw['schema']!r:.40} is not known, this program reads {SCHEMA}",
                path=path,
                line=number,
                remedy="upgrade pytest-modelbench, or move the file out of the results",
            )
        kind = raw["kind"]
        if kind == "run":
            self._index.add_header(header_of(raw, path))
            return
        if kind == "check":
            from pytest_modelbench.records import CheckRecord

            self._index.add_check(CheckRecord.model_validate(raw))
            return
        if kind == "attempt":
            grades = ""
        elif kind == "regrade":
            grades = raw["grades"]
        else:
            raise ValueError(f"no kind {kind!r} is known")
        get = raw.get
        intern = self._strings.setdefault
        identity = raw["identity"]
        parts = (
            identity["task"],
            identity["check"],
            identity["candidate"],
            identity.get("reference", ""),
        )
        digests = self._digests.get(parts)
        if digests is None:
            _require_texts(parts)
            digests = self._digests[parts] = Digests(*(intern(part, part) for part in parts))
        verdict: dict[str, Any] = get("verdict") or {}
        reward: Any = None
        stage: Stage | None = None
        outcome = _OUTCOMES[raw["outcome"]]
        if outcome is Outcome.FAULT:
            fault = raw["fault"]
            reason = fault["kind"]
            stage = _STAGES[fault["stage"]]
        else:
            reward = verdict["reward"]
            reason = verdict.get("reason", "")
            if verdict["passed"] is not (outcome is Outcome.PASSED):
                raise ValueError("outcome and verdict contradict each other")
            if not (_is_amount(reward) and reward <= 1):
                raise ValueError(f"the reward {reward} is not within 0 and 1")
            reward = self._rewards.setdefault(reward, reward)
        name, started, repeat, seconds = raw["id"], raw["started"], raw["repeat"], raw["seconds"]
        case = raw["case"]
        shared = raw["run"], get("series", ""), get("note", ""), raw["pack"], raw["candidate"]
        origin = self._origins.get(shared)
        if origin is None:
            _require_texts(shared)
            place = f"{quoted(raw['pack'])}/{quoted(raw['candidate'])}"
            if place != f"{path.parent.parent.name}/{path.parent.name}":
                # Who reads one candidate's folder would miss it, and who reads all would count it.
                if shared in self._misplaced:
                    return
                self._misplaced.add(shared)
                raise ValueError(f"this line and those like it belong into the folder {place}")
            origin = Origin(path, *(intern(part, part) for part in shared))
            self._origins[shared] = origin
        _require_texts((name, started, case, reason, grades))
        if type(repeat) is not int or repeat < 1 or not _is_amount(seconds):
            raise ValueError("repeat or seconds is no number that counts")
        entry = Entry(
            origin,
            offset,
            name,
            grades,
            intern(case, case),
            repeat,
            digests,
            outcome,
            reward,
            intern(reason, reason),
            stage,
            started,
            seconds,
            self._detail(raw, verdict) if self._details else None,
        )
        if not self._index.add(entry):
            self._compare(entry, raw, number)

    def _detail(self, raw: dict[str, Any], verdict: dict[str, Any]) -> Detail:
        get = raw.get
        failing: tuple[tuple[str, str], ...] = ()
        if verdict and not verdict["passed"]:
            failing = tuple(
                [
                    (c["name"], c.get("reason", ""))
                    for c in verdict.get("checks", ())
                    if not c["passed"]
                ]
            )
            if failing not in self._failing and not all(
                type(word) is str for check in failing for word in check
            ):
                raise TypeError("a check's name or reason is no text")
            failing = self._failing.setdefault(failing, failing)
        spent: Spent | None = None
        others: tuple[tuple[str, Spent], ...] = ()
        for role, usage in get("usage", _NOTHING).items():
            used = Spent(*map(usage.get, Spent._fields, _UNSPENT))
            if not all([value is None or _is_amount(value) for value in used]):
                raise ValueError(f"the usage of {role} has a number that counts nothing")
            if role == _CANDIDATE:
                spent = used
            else:
                others += ((role, used),)
        counts = tuple(get("counts", _NOTHING).items())
        known = self._counts.get(counts)
        if known is None:
            if not all(type(count) is int and count >= 0 for _, count in counts):
                raise ValueError("counts has a number that counts nothing")
            known = self._counts[counts] = dict(counts)
        working, measures = get("working"), verdict.get("measures")
        if not (working is None or _is_amount(working)):
            raise ValueError("working is no number of seconds")
        if measures and not all(type(one) in _NUMBERS for one in measures.values()):
            raise TypeError("measures has something that is no number")
        intern = self._strings.setdefault
        trust, box = verdict.get("trust", "trusted"), get("box", "")
        served = get("served_model", "")
        if trust not in _TRUSTS or type(box) is not str or type(served) is not str:
            raise TypeError("trust, box or served_model is no word for it")
        return Detail(
            spent,
            others,
            known,
            failing,
            intern(trust, trust),
            intern(box, box),
            get("scripted", False) is True,
            working,
            intern(served, served),
            work_of(get("harvest"), get("evidence", _NOTHING)),
            measures,
        )

    def _compare(self, entry: Entry, raw: dict[str, Any], number: int) -> None:
        """Say loudly when one id stands over two different tries; a copied line is none."""
        first = self._index.find(entry.id)
        assert first is not None  # add() has just found it
        with open_results(first.path) as file:
            file.seek(first.offset)
            stored = _parsed(file.readline())
        if stored != raw:
            self._index.damages.append(
                Damage(
                    entry.path,
                    number,
                    False,
                    f"its id {entry.id} stands in {first.path} with other content, which counts",
                )
            )

    def _damaged(self, path: Path, number: int, line: bytes, error: Exception) -> None:
        if isinstance(error, json.JSONDecodeError):
            torn = error.pos >= len(error.doc.rstrip()) or error.msg.startswith("Unterminated")
            what = "not a whole JSON line" if torn else f"not JSON at column {error.colno}"
        elif isinstance(error, UnicodeDecodeError):
            torn, what = False, "not UTF-8"
        else:
            torn, what = False, _what_is_wrong(line, error)
        self._index.damages.append(Damage(path, number, torn, what))


def _parsed(line: bytes) -> Any:  # Any: JSON, checked by _take
    """Parse a line as pydantic's parser does, twice as fast as the standard one.

    No model is asked: that would cost more than all the rest. Half a surrogate pair (FR20), and
    the place of an error, are left to the standard parser.
    """
    try:
        return from_json(line, cache_strings="keys")
    except ValueError:
        return parse(line.decode())


_OUTCOMES = {str(outcome): outcome for outcome in Outcome}
_STAGES = {str(stage): stage for stage in Stage}
_TRUSTS = frozenset(map(str, Trust))
_TEXTS = {str}
_NUMBERS = (int, float)
_NOTHING: dict[str, Any] = {}  # Any: as above
_CANDIDATE = str(Role.CANDIDATE)
_UNSPENT = tuple(Spent._field_defaults.values())


def _is_amount(value: Any) -> bool:  # Any: JSON as above
    """Tell whether a value is a finite number that is not below 0."""
    return type(value) in _NUMBERS and 0 <= value < math.inf


def _require_texts(values: tuple[object, ...]) -> None:
    """Raise TypeError unless all of some values are texts."""
    if set(map(type, values)) != _TEXTS:
        raise TypeError("one of its texts is something else")


# Any: JSON as above
def work_of(harvest: Mapping[str, str] | None, evidence: Mapping[str, str]) -> int | None:
    """Return what tells two attempts' work apart, within one process; None where none was kept."""
    if harvest is not None:
        return hash(frozenset(harvest.items()))
    name = evidence.get("harvest") or evidence.get("transcript")
    return None if name is None else hash(name)


def _headed(line: bytes, path: Path) -> RunHeader | bool:
    """Return a header, True for another whole line, False for a line that cannot be used."""
    try:
        raw = _parsed(line)
        return header_of(raw, path) if raw["kind"] == "run" else True
    except (ValueError, TypeError, KeyError, AttributeError):
        return False


def _held(path: Path) -> list[RunHeader]:
    """Return what the tries of a file without a header come to, as a header a run."""
    index = Index()
    with suppress(StoreProblem):  # for ``read`` to tell
        _Reader(index, details=False).read(path)
    by_run: dict[tuple[str, str], list[Entry]] = {}
    for entry in index.entries():
        if not entry.cell.certifies:  # that is stored beside every run, and declared by few
            by_run.setdefault((entry.run, entry.note), []).append(entry)
    return [
        RunHeader(
            path=path,
            run=run,
            started=min(entry.started for entry in tries),
            pack=tries[0].pack,
            candidate=tries[0].candidate,
            note=note,
            cases=tuple(dict.fromkeys(entry.case for entry in tries)),
            candidates=(tries[0].candidate,),
            repeats=max(entry.repeat for entry in tries),
            facts={},
            versions={},
            fresh={},
        )
        for (run, note), tries in by_run.items()
    ]


def _what_is_wrong(line: bytes, error: Exception) -> str:
    """Return a sentence on a line of JSON that is no result: slow, exact, for few lines."""
    from pydantic import ValidationError

    from pytest_modelbench.records import AttemptRecord

    try:
        raw = _parsed(line)
        if not isinstance(raw, dict) or raw.get("kind") != "run":
            AttemptRecord.model_validate(raw)
    except ValidationError as invalid:
        first = invalid.errors()[0]
        return f"{'.'.join(map(str, first['loc'])) or 'line'}: {first['msg']}"
    except ValueError:  # of another kind: what cannot be parsed
        pass
    return f"no result: {error}" if not isinstance(error, KeyError) else f"no {error} in it"
