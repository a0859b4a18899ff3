"""Cases of benchmarks that we ship are sound: gold passes, doing nothing and damage do not."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from pytest_modelbench.benchmarks.benchmark import Benchmark
from pytest_modelbench.benchmarks.ledger.rules import REASONS
from pytest_modelbench.benchmarks.loops import Met
from pytest_modelbench.packs.model import Case
from pytest_modelbench.packs.reading import find_packs, read_packs
from pytest_modelbench.protocols.benchmark import play
from pytest_modelbench.records import Candidate, Verdict

ROOT = Path(__file__).parents[2]
PACKS = [
    pack
    for pack in read_packs(find_packs([ROOT / "cases"]), ROOT / "reference_solutions")
    if pack.protocol == "benchmark"
]


def judged(case: Case, candidate: str, folder: Path) -> Verdict:
    assert case.source is not None
    assert case.given is not None
    benchmark = case.source.benchmark
    assert isinstance(benchmark, Benchmark)
    world = benchmark.setup(case.given.public, folder)
    agent = Candidate(name=candidate, agent=candidate.partition("+")[0])
    met: Met = play(benchmark, case.given, agent, benchmark.tools(world))
    seen = benchmark.observe(case.given, benchmark.harvest(world, met))
    return benchmark.verify(case.given.private, seen)


@pytest.mark.parametrize("pack", PACKS, ids=[pack.name for pack in PACKS])
def test_gold_passes_nothing_fails_and_damage_is_seen(pack: object, tmp_path: Path) -> None:
    (found,) = [one for one in PACKS if one is pack]
    for case in found.cases:
        gold, nothing = judged(case, "reference", tmp_path), judged(case, "seed", tmp_path)
        assert gold.passed, case.id
        assert gold.reward == 1.0
        assert not nothing.passed, case.id
        assert nothing.reward == 0.0
        never_lost = {check.name for check in gold.checks}
        never_lost -= {check.name for check in nothing.checks if not check.passed}
        for variant in case.damaged:
            spoilt = judged(case, f"reference+{variant.name}", tmp_path)
            lost = {check.name for check in spoilt.checks if not check.passed}
            assert lost == set(variant.loses), (case.id, variant.name)
            assert spoilt.reward < 1.0
            never_lost -= lost
        assert never_lost == set(), case.id  # a check that nothing ever loses proves nothing


def test_the_ledger_has_thirty_requests_that_end_in_every_way() -> None:
    (pack,) = [one for one in PACKS if one.name == "ledger"]
    assert len(pack.cases) == 30
    ends = {
        one["reason"]
        for case in pack.cases
        if case.given is not None
        for one in case.given.private.data["assertions"]  # type: ignore[union-attr]  # a list
        if isinstance(one, dict) and one["type"] == "ledger_request"
    }
    assert ends == {reason for reasons in REASONS.values() for reason in reasons}


def test_bank_booking_is_what_its_script_writes(tmp_path: Path) -> None:
    folder = ROOT / "cases" / "bank-booking"
    spec = importlib.util.spec_from_file_location("bank_booking", folder / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.write(tmp_path)
    for name in ("bank.csv", "shared/accounts.csv", "shared/tax_keys.csv"):
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes(), name
    (pack,) = [one for one in PACKS if one.name == "bank-booking"]
    assert len(pack.cases) == 259
