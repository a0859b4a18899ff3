"""When an answer in SQL is right: execution match and soft F1, as BIRD's graders count them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from pytest_modelbench.benchmarks.bird.database import Row

RULES_VERSION = "mini_dev 4d970a9"


def execution_match(predicted: Sequence[Row], gold: Sequence[Row]) -> bool:
    """Tell whether two results are one set of rows.

    Neither order nor repetition counts, nor do the names of columns; their order does. Values are
    equal as in Python: 1 is 1.0, NULL is NULL, '1' is not 1.
    """
    return set(predicted) == set(gold)


def soft_f1(predicted: Sequence[Row], gold: Sequence[Row]) -> float:
    """Return the F1 of cells, rows paired by position once repetitions are dropped.

    Within a pair a cell counts where it is anywhere in the other row; each count is a share of the
    gold's columns. A row too many or too few is one whole error. Two empty results are alike.
    """
    if not predicted and not gold:
        return 1.0
    found, wanted = list(dict.fromkeys(predicted)), list(dict.fromkeys(gold))
    both = found_only = wanted_only = 0.0
    for mine, theirs in zip(found, wanted, strict=False):
        matched = sum(cell in theirs for cell in mine)
        both += matched / len(theirs)
        found_only += (len(mine) - matched) / len(theirs)
        wanted_only += sum(cell not in mine for cell in theirs) / len(theirs)
    found_only += max(0, len(found) - len(wanted))
    wanted_only += max(0, len(wanted) - len(found))
    if both == 0:
        return 0.0
    precision, recall = both / (both + found_only), both / (both + wanted_only)
    return 2 * precision * recall / (precision + recall)


def efficiency_reward(ratios: Sequence[float]) -> float:
    """Return R-VES's reward of a right answer from samples of gold time / predicted time.

    Samples three standard deviations off or more are dropped; where all are alike none is left,
    and the reward is 0 (upstream divides by zero there and counts it so). It depends on the
    machine: to be shown, never to be judged by.
    """
    if not ratios:
        return 0.0
    mean, spread = statistics.fmean(ratios), statistics.pstdev(ratios)
    kept = [one for one in ratios if mean - 3 * spread < one < mean + 3 * spread]
    if not kept:
        return 0.0
    ratio = statistics.fmean(kept)
    for least, reward in ((2.0, 1.25), (1.0, 1.0), (0.5, 0.75), (0.25, 0.5)):
        if ratio >= least:
            return reward
    return 0.25


def r_ves(rewards: Sequence[float]) -> float:
    """Return the R-VES of some questions, 0 to 111.8, wrong answers having the reward 0."""
    return statistics.fmean(100 * math.sqrt(reward) for reward in rewards) if rewards else 0.0
