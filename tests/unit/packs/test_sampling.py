"""Splits and samples: the same everywhere, nested, and stable while a pack grows."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_modelbench.packs.model import Case
from pytest_modelbench.packs.sampling import Draw, draw_cases, split_of, stratum_of
from pytest_modelbench.records import Limits


def case(name: str, *, group: str = "", tags: tuple[str, ...] = (), pack: str = "p") -> Case:
    return Case(
        pack=pack,
        id=name,
        folder=Path(name),
        manifest=Path(name, "case.toml"),
        title=name,
        prompt=name,
        limits=Limits(),
        seed=None,
        hidden=None,
        reference=None,
        tags=tags,
        group=group,
    )


POOL = [case(f"case-{number:03}") for number in range(300)]


def ids(cases: tuple[Case, ...]) -> list[str]:
    return [one.id for one in cases]


def test_the_split_is_the_sha256_rule() -> None:
    for one in POOL:
        number = int(hashlib.sha256(f"p/{one.id}".encode()).hexdigest()[:8], 16)
        assert split_of(one) == ("dev" if number < 1431655765 else "eval")
    # The rule's own example: the text is `db-id/question-id`, here as a group.
    assert split_of(case("q", group="california_schools/0")) == (
        "dev"
        if int(hashlib.sha256(b"california_schools/0").hexdigest()[:8], 16) < 1431655765
        else "eval"
    )
    dev = draw_cases(POOL, Draw(split="dev"))
    assert 75 <= len(dev) <= 125  # a third of 300, within three standard deviations
    assert sorted(ids(dev) + ids(draw_cases(POOL, Draw(split="eval")))) == [c.id for c in POOL]


def test_a_group_keeps_cases_together_across_packs() -> None:
    for number in range(50):
        group = f"document-{number}"
        members = [case(f"{number}-{n}", group=group, pack=f"pack-{n}") for n in range(4)]
        assert len({split_of(member) for member in members}) == 1


@given(st.integers(0, 300), st.integers(0, 300), st.integers(0, 5))
def test_samples_nest(one: int, other: int, seed: int) -> None:
    small, large = sorted((one, other))
    inner = ids(draw_cases(POOL, Draw(size=small, seed=seed)))
    outer = ids(draw_cases(POOL, Draw(size=large, seed=seed)))
    assert len(inner) == small
    assert set(inner) <= set(outer)
    assert outer == sorted(outer)  # the pack's order


def test_growing_a_pack_moves_no_case_between_splits() -> None:
    before = set(ids(draw_cases(POOL[:100], Draw(split="dev"))))
    after = set(ids(draw_cases(POOL, Draw(split="dev"))))
    assert after & {c.id for c in POOL[:100]} == before


@given(st.randoms())
def test_the_order_of_files_changes_no_choice(random: object) -> None:
    shuffled = list(POOL)
    random.shuffle(shuffled)  # type: ignore[attr-defined]  # hypothesis's Random
    draw = Draw(split="eval", size=20, seed=7)
    assert sorted(ids(draw_cases(shuffled, draw))) == ids(draw_cases(POOL, draw))


def test_seeds_differ() -> None:
    draws = {tuple(ids(draw_cases(POOL, Draw(size=10, seed=seed)))) for seed in range(20)}
    assert len(draws) == 20


def test_every_process_draws_the_same_cases() -> None:
    program = (
        "import sys; sys.path[:0] = [sys.argv[1]]\n"
        "from test_sampling import POOL, draw_cases, Draw, ids\n"
        "print(*ids(draw_cases(POOL, Draw(size=10, seed=7))))\n"
    )
    environ = {k: v for k, v in os.environ.items() if k != "PYTHONHASHSEED"}
    folder = str(Path(__file__).parent)
    outs = {
        subprocess.run(
            [sys.executable, "-c", program, folder],
            env=environ | {"PYTHONHASHSEED": hashing},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hashing in ("1", "2")
    }
    assert outs == {" ".join(ids(draw_cases(POOL, Draw(size=10, seed=7)))) + "\n"}


@pytest.mark.parametrize("mark", [":", "="])
def test_strata_have_so_many_each(mark: str) -> None:
    pool = [case(f"c{n}", tags=("sql", f"db{mark}{'ab'[n % 2]}")) for n in range(40)]
    pool += [case(f"d{n}") for n in range(2)]
    drawn = draw_cases(pool, Draw(size=3, seed=1, per="db"))
    counts = [stratum_of(one, "db") for one in drawn]
    assert {name: counts.count(name) for name in set(counts)} == {"a": 3, "b": 3, "": 2}
    more = draw_cases(pool, Draw(size=5, seed=1, per="db"))
    assert set(ids(drawn)) <= set(ids(more))
    assert stratum_of(case("x", tags=("db",)), "db") == "db"


def test_a_fresh_sample_avoids_seen_cases_and_their_groups() -> None:
    pool = [case(f"c{n}", group=f"g{n // 2}") for n in range(20)]
    drawn = ids(draw_cases(pool, Draw(avoid_seen=True), seen={"c0", "c7"}))
    assert drawn == [f"c{n}" for n in range(20) if n not in (0, 1, 6, 7)]
    assert len(draw_cases(pool, Draw(), seen={"c0"})) == 20


def test_a_draw_is_told_in_words() -> None:
    assert Draw().everything
    assert Draw(split="eval", size=10, seed=7, avoid_seen=True).in_words() == (
        "split eval, sample of 10, sample seed 7, without cases that were seen"
    )
    assert Draw(size=2, per="db").in_words() == "sample of 2 of each db, sample seed 0"
    assert Draw(size=10, seed=7).grows_from(Draw(size=20, seed=7))
    assert not Draw(size=10, seed=7).grows_from(Draw(size=10, seed=8))
