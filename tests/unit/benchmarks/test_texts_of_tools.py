"""What tools say of themselves is part of a case's identity by its benchmark's version.

Whoever changes a tool's text or schema raises ``version`` and puts the new digest here: stored
verdicts are of the other task then. Prompts, policies and worlds are in a case's own digest.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from pytest_modelbench.benchmarks.benchmark import Benchmark
from pytest_modelbench.benchmarks.tools import schema_of
from pytest_modelbench.packs.reading import read_pack

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("name", "version", "digest"),
    [
        ("ledger", "1", "08df0d39092a0ed4"),
        ("office", "1", "d6b530822a54f947"),
        ("wiki-edit", "1", "6972e521e5a7f053"),
        ("wiki", "1", "c425bd9a4d425e55"),
    ],
)
def test_texts_belong_to_a_version(name: str, version: str, digest: str) -> None:
    case = read_pack(ROOT / "cases" / name, ROOT / "reference_solutions").cases[0]
    assert case.source is not None
    assert case.given is not None
    benchmark = case.source.benchmark
    assert isinstance(benchmark, Benchmark)
    world = benchmark.setup(case.given.public, Path())
    tools = [schema_of(tool) for tool in benchmark.tools(world)]
    told = json.dumps(tools, sort_keys=True)
    assert (benchmark.version, hashlib.sha256(told.encode()).hexdigest()[:16]) == (version, digest)
