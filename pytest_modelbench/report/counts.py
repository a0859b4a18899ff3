"""What is counted of one candidate on one pack: light, since a store has ten thousands of cases."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from typing import TypeVar

from pytest_modelbench.store.entry import Digests, Spent
from pytest_modelbench.words import Trust


@dataclass(slots=True)
class Sum:
    """A sum over those of ``of`` attempts that know the quantity; unknown is never 0."""

    total: float = 0.0
    known: int = 0
    of: int = 0

    def add(self, value: float | None) -> None:
        """Add what one attempt knows, or that it knows nothing."""
        self.of += 1
        if value is not None:
            self.total += value
            self.known += 1


SUMS = Spent._fields[:8]
"""What may be unknown and is summed over the candidate's calls: dollars and tokens."""

COUNTS = Spent._fields[8:12]
"""What happened in the path to the model: requests, retries, waits and their seconds."""

OTHER_TRIES = "other tries"
"""Where the candidate's own money went beside the attempts that count."""

NOT_RUN = "not run"
OTHER_CHECK = "judged by another version of the check"
OTHER_TASK = "run on another version only"

_Item = TypeVar("_Item", bound=Hashable)

Counted = tuple[tuple[_Item, int], ...]
"""Things and how often each was counted: a tuple, since a store has ten thousands of them."""

NO_VERSION = Digests("", "", "")

_NONE_KNOWN = (0,) * len(SUMS)


@dataclass(slots=True)
class CaseTally:
    """What is stored of one case at one version, over the repeats.

    Values that many cases share are shared in memory: change none of them.
    """

    version: Digests = NO_VERSION
    started: str = ""
    """Of the newest try: the newest version of a case is today's where nothing better is known."""
    passes: int = 0
    verdicts: int = 0
    rewards: tuple[float, ...] | None = None
    """Of each verdict, in the order of ``by_repeat``; None where they say no more than it does."""
    seconds: float | None = None
    """The median of the attempts' working times; ``summed_seconds`` is their sum."""
    summed_seconds: float = 0.0
    totals: Sequence[float | None] = ()
    """Of ``SUMS``, over the attempts that know each, as many as ``known`` says; None for none."""
    known: tuple[int, ...] = _NONE_KNOWN
    counts: tuple[float, ...] = ()
    """Of ``COUNTS``, in the path to the model; empty where there were none."""
    behaviour: Counted[str] = ()
    """Turns and misbehaviour of the agent."""
    misbehaved: Counted[str] = ()
    """How many attempts showed each of them."""
    faults: Counted[str] = ()
    reasons: Counted[str] = ()
    failing: Counted[tuple[str, str]] = ()
    own: Counted[tuple[str, str]] = ()
    """Users' own tests: (test, why it failed, or empty where it passed) and how often."""
    trust: Trust = Trust.TRUSTED
    boxes: frozenset[str] = frozenset()
    served: frozenset[str] = frozenset()
    scripted: bool = False
    measures: Mapping[str, tuple[float, ...]] | None = None
    """Figures that nothing is decided by; None where there are none, as nearly always."""
    notes: Counted[str] = ()
    """Of the runs that made the attempts with a verdict."""
    by_repeat: tuple[tuple[int, bool | None], ...] = ()
    """Each repeat and whether it passed; None for a fault."""
    waiting: Mapping[int, str] = field(default_factory=dict)
    """Why a repeat that is stored has neither at this version."""

    def __reduce__(self) -> tuple[type[CaseTally], tuple[object, ...]]:
        """Travel between processes by position: half the time of doing it by name."""
        return CaseTally, tuple([getattr(self, name) for name in self.__slots__])

    @property
    def outcomes(self) -> list[bool]:
        """Return passed or not of each verdict."""
        return [passed for _, passed in self.by_repeat if passed is not None]

    @property
    def repeats(self) -> frozenset[int]:
        """Return the repeats that ended in a verdict or a fault."""
        return frozenset([repeat for repeat, _ in self.by_repeat])

    @property
    def all_rewards(self) -> tuple[float, ...]:
        """Return the reward of each verdict; where they say no more than passed, passes first."""
        return _plain(self.passes, self.verdicts) if self.rewards is None else self.rewards

    @property
    def list_usd(self) -> float | None:
        """Return the list cost of all attempts with a verdict; None where one is unknown."""
        return self.totals[0] if self.known[0] == self.verdicts > 0 else None


@lru_cache(maxsize=1024)
def _plain(passes: int, verdicts: int) -> tuple[float, ...]:
    return (1.0,) * passes + (0.0,) * (verdicts - passes)


@dataclass(slots=True)
class Tally:
    """What is stored of one candidate on one pack. ``elsewhere``: judge, driver, other tries."""

    candidate: str
    cases: dict[str, tuple[CaseTally, ...]] = field(default_factory=dict)
    """Counts of each version of a case, each version once."""
    superseded: int = 0
    fresh_starts: int = 0
    elsewhere: dict[str, Sum] = field(default_factory=dict)
    first_started: str = ""
    """Of all attempts, faulted and superseded ones among them; a regrade is none."""
    last_started: str = ""
    last_ended: str = ""
    """The latest end of an attempt's wall time."""

    def at(self, case: str, version: Digests) -> CaseTally | None:
        """Return the counts of a case at a version; None where it has none."""
        return next((one for one in self.cases.get(case, ()) if one.version == version), None)

    def add(self, case: str, counted: CaseTally) -> None:
        """Take up the counts of a case at one more version."""
        self.cases[case] = (*self.cases.get(case, ()), counted)

    def counted(self) -> Iterator[CaseTally]:
        """Yield the counts of every case at every version."""
        return chain.from_iterable(self.cases.values())

    def share(self, strings: dict[str, str]) -> None:
        """Keep names and digests once that tallies of other candidates have, too."""
        kept = strings.setdefault
        for counted in self.counted():
            counted.version = Digests(*[kept(part, part) for part in counted.version])
        self.cases = {kept(case, case): versions for case, versions in self.cases.items()}
