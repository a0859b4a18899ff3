"""The exceptions of this project.

ModelbenchError
├── UsageProblem           the user asked for something that cannot be done; nothing has run
│   ├── PackProblem        a manifest, a case or a reference is not sound: file, line, remedy
│   │   └── PackProblems   several of them, told together
│   └── RegistryProblem    modelbench.toml or --models: file, line, the names that are known
├── StoreProblem           results cannot be read or written: file, line, remedy
└── Fault                  an attempt ended without a verdict; never a score
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


class ModelbenchError(Exception):
    """Root of every exception that this project raises on purpose."""


class UsageProblem(ModelbenchError):
    """Say what cannot be done and what to do instead; shown without a traceback."""


class _LocatedProblem(UsageProblem):
    """A problem with a place: ``file:line: what is wrong; what to do``."""

    def __init__(
        self, what: str, *, path: Path | None = None, line: int | None = None, remedy: str = ""
    ) -> None:
        self.what = what
        self.path = path
        self.line = line
        self.remedy = remedy
        place = "" if path is None else f"{path}:{line}: " if line is not None else f"{path}: "
        super().__init__(f"{place}{what}" + (f"; {remedy}" if remedy else ""))


class PackProblem(_LocatedProblem):
    """A pack, a case or a reference is not sound."""


class PackProblems(PackProblem):
    """Several things are wrong with packs: ``problems``, each with its own place and remedy."""

    def __init__(self, problems: Sequence[PackProblem]) -> None:
        self.problems = tuple(problems)
        lines = "".join(f"\n  {problem}" for problem in self.problems)
        super().__init__(f"{len(self.problems)} problems in packs:{lines}")


class RegistryProblem(_LocatedProblem):
    """A candidate or a server is unknown or badly declared."""


class StoreProblem(_LocatedProblem):
    """Results cannot be read or written."""


INTERRUPTED = "interrupted"
"""The kind of fault of work that was done when its run ended, and had no verdict yet."""


class Fault(ModelbenchError):
    """The path to the model, or our own machinery, failed: no verdict.

    ``kind`` is a short stable word (``server-error``, ``worker-crash``, ``grader``…). ``stage`` is
    ``work`` up to the harvest (the attempt runs again) and ``grade`` after it (graded again from
    stored evidence, the candidate is not called). ``permanent`` stops its candidate everywhere.
    """

    def __init__(
        self,
        kind: str,
        text: str,
        *,
        stage: str = "work",
        status: int | None = None,
        permanent: bool = False,
    ) -> None:
        self.kind = kind
        self.text = text
        self.stage = stage
        self.status = status
        self.permanent = permanent
        super().__init__(f"{kind}: {text}")
