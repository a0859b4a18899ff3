"""The package as a whole."""

import subprocess
import sys
import time

import pytest

from pytest_modelbench import stats
from pytest_modelbench.stats import CaseScores, holm, paired_difference, sign_flip_test


def test_importing_it_imports_neither_numpy_nor_scipy() -> None:
    code = (
        "import sys, pytest_modelbench.stats\n"
        "print(sorted({'numpy', 'scipy'} & {name.partition('.')[0] for name in sys.modules}))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def test_every_public_name_is_there_once() -> None:
    assert len(set(stats.__all__)) == len(stats.__all__)
    for name in stats.__all__:
        assert getattr(stats, name) is not None


@pytest.mark.parametrize("attempts", [1, 5])
def test_thirty_candidates_on_five_hundred_cases_take_a_moment(attempts: int) -> None:
    import numpy as np

    generator = np.random.default_rng(7)
    rates = generator.beta(2, 1, size=(30, 500))
    passes = generator.binomial(attempts, rates).tolist()
    candidates = [CaseScores.of_passes(row, [attempts] * 500) for row in passes]
    sign_flip_test(candidates[0], candidates[1])  # numpy and scipy are imported here
    paired_difference(candidates[0], candidates[1])
    start = time.process_time()
    p_values = []
    for i, a in enumerate(candidates):
        for b in candidates[:i]:
            p_values.append(sign_flip_test(a, b).p)
            assert paired_difference(a, b) is not None
    assert len(holm(p_values)) == 435
    assert time.process_time() - start < 1.5
