"""Write a small sound pack, to start one of one's own from."""

from __future__ import annotations

from pathlib import Path

from pytest_modelbench.errors import PackProblem
from pytest_modelbench.packs.manifest import Problems
from pytest_modelbench.packs.model import (
    CASE_MANIFEST,
    DAMAGED_MANIFEST,
    DAMAGED_SUFFIX,
    PACK_MANIFEST,
)
from pytest_modelbench.packs.shape import check_id

CASE = "clamp"

_PACK = """\
# A pack: cases that share a protocol, limits and a check. Every key is in docs/write-a-pack.md.

[pack]
name = "{name}"
title = "{name}: say in a few words what is measured"

[limits]                # of each attempt; a case may set its own
turns = 12
seconds = 300           # working time: what the gateway holds does not count
wall_seconds = 1800
command_seconds = 30
output_chars = 8000

[check]
seconds = 60            # for one grading
"""

_CASE = """\
title = "Fix one function"
tags = ["fixes-bug"]

# What the candidate is told. A longer prompt can stand in prompt.md instead.
prompt = \"\"\"
`limits.py` has a bug: `clamp(12, 0, 10)` must be 10 and is 12. Fix the function `clamp` so that it
does what its docstring says.
\"\"\"
"""

_SEED = '''\
"""Keep numbers within limits."""


def clamp(number, low, high):
    """Return the number, or the nearer of low and high when it lies outside of them."""
    if number < low:
        return low
    return number
'''

_REFERENCE = _SEED.replace("    return number\n", "    return min(number, high)\n")

_DAMAGED = _SEED.replace(
    "    if number < low:\n        return low\n    return number\n",
    "    return min(number, high)\n",
)

_HIDDEN = '''\
"""Hidden checks: the candidate never sees them. `solution` is its work, run in a box."""


def test_above(solution):
    limits = solution.load("limits")
    assert limits.clamp(12, 0, 10) == 10
    assert limits.clamp(10.5, -1, 10) == 10


def test_below(solution):
    assert solution.load("limits").clamp(-3, 0, 10) == 0


def test_within(solution):
    limits = solution.load("limits")
    assert [limits.clamp(number, 0, 10) for number in (0, 4, 10)] == [0, 4, 10]
'''

_LOSES = """\
# This variant of the reference is wrong in one way, and must lose exactly these checks.
loses = ["test_below"]
"""


def new_pack(name: str, cases_root: Path, references_root: Path) -> list[Path]:
    """Write a pack of one case, with reference and damaged variant, and return its files.

    PackProblem where the name cannot be a pack's or something of that name is there.
    """
    folder, references = cases_root / name, references_root / name
    problems = Problems()
    check_id("pack", name, folder, None, problems)
    if not len(problems):
        for place in (folder, references):
            if place.exists() or place.is_symlink():
                problems.add("is there already", place, remedy="take another name, or remove it")
    problems.check()
    files = {
        folder / PACK_MANIFEST: _PACK.format(name=name),
        folder / CASE / CASE_MANIFEST: _CASE,
        folder / CASE / "seed" / "limits.py": _SEED,
        folder / CASE / "hidden" / "test_limits.py": _HIDDEN,
        references / CASE / "limits.py": _REFERENCE,
        references / f"{CASE}{DAMAGED_SUFFIX}" / "only-above" / "limits.py": _DAMAGED,
        references / f"{CASE}{DAMAGED_SUFFIX}" / "only-above" / DAMAGED_MANIFEST: _LOSES,
    }
    for path, text in files.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise PackProblem(
                f"cannot be written: {error.strerror}", path=path, remedy="choose another folder"
            ) from error
    return list(files)
