"""Which cases a run draws from its packs: by a split, by a sample, away from what was seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from pydantic import JsonValue

from pytest_modelbench.packs.model import Pack
from pytest_modelbench.packs.sampling import Draw, draw_cases
from pytest_modelbench.records import BUILT_IN
from pytest_modelbench.store.index import Index, RunHeader


def read_draw(config: pytest.Config) -> Draw:
    """Read the options; UsageError for those that say nothing without another."""
    size = config.getoption("modelbench_sample")
    seed = config.getoption("modelbench_sample_seed")
    per = config.getoption("modelbench_sample_per")
    for option, given in (("seed", seed is not None), ("per", bool(per))):
        if given and size is None:
            raise pytest.UsageError(f"--modelbench-sample-{option} needs --modelbench-sample N")
    return Draw(
        split=config.getoption("modelbench_split") or "",
        size=size,
        seed=seed or 0,
        per=per or "",
        avoid_seen=config.getoption("modelbench_exclude_seen"),
    )


def drawn_cases(
    draw: Draw, packs: Sequence[Pack], index: Index
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the chosen case ids of each pack's folder; nothing where all are tried.

    UsageError where a pack has none left.
    """
    if draw.everything:
        return ()
    drawn = []
    for pack in packs:
        seen = seen_cases(draw, pack.name, index) if draw.avoid_seen else ()
        cases = draw_cases(pack.cases, draw, seen)
        if not cases:
            raise pytest.UsageError(
                f"{pack.name}: no case is left of {len(pack.cases)} ({draw.in_words()}"
                + (f"; {len(seen)} were seen)" if draw.avoid_seen else ")")
            )
        drawn.append((str(pack.folder), tuple(case.id for case in cases)))
    return tuple(drawn)


def seen_cases(draw: Draw, pack: str, index: Index) -> set[str]:
    """Return the cases of a pack that candidates had tried when this draw was first made.

    A run that goes on, or that grows a sample by its seed, draws from the same pool as the first
    run of that draw, whose own cases are not yet seen.
    """
    began = min(
        (
            header.started
            for header in index.headers
            if header.pack == pack and header.draw and draw.grows_from(draw_of(header))
        ),
        default=None,
    )
    return {
        entry.case
        for entry in index.entries()
        if entry.pack == pack
        and entry.candidate not in BUILT_IN
        and entry.cell.variant is None
        and (began is None or entry.started < began)
    }


def recorded(draw: Draw) -> dict[str, JsonValue]:
    """Return a draw as the head of a results file says it; empty where all cases are tried."""
    if draw.everything:
        return {}
    return {
        "split": draw.split,
        "sample": draw.size,
        "sample_seed": draw.seed,
        "per": draw.per,
        "exclude_seen": draw.avoid_seen,
    }


def draw_of(header: RunHeader) -> Draw:
    """Read ``recorded``'s form back."""
    found: Mapping[str, object] = header.draw
    size, seed = found.get("sample"), found.get("sample_seed")
    return Draw(
        split=str(found.get("split", "")),
        size=size if isinstance(size, int) else None,
        seed=seed if isinstance(seed, int) else 0,
        per=str(found.get("per", "")),
        avoid_seen=found.get("exclude_seen") is True,
    )
