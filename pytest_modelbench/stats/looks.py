"""Looks: at which level a verdict may be shown before, at and after the declared size."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import NamedTuple

INTERIM_ALPHA = 0.001
E_THRESHOLD = 20.0


class Stage(StrEnum):
    """Name where a grid stands when its comparisons are shown."""

    INTERIM = "interim"
    DECLARED = "complete at its declared size"
    EXTENDED = "extended after it was shown"


def look_alpha(
    stage: Stage, looks: int = 1, alpha: float = 0.05, interim_alpha: float = INTERIM_ALPHA
) -> float:
    """Return the level at which this look decides (Haybittle, 1971; Peto et al., 1976).

    An interim look decides at ``interim_alpha``, the declared size at ``alpha`` whatever was shown
    before. A grid that was extended after its verdict was seen decides at ``alpha`` over the
    number of looks, this one included.
    """
    if looks < 1:
        raise ValueError(f"{looks} looks: this one counts")
    if stage is Stage.INTERIM:
        return min(interim_alpha, alpha)
    return alpha if stage is Stage.DECLARED else alpha / looks


class EProcess(NamedTuple):
    """Hold an e-value and its logarithm; it may be read at any time, and decides at 20."""

    e: float
    log_e: float
    decided: bool


def e_process(a_only: int, b_only: int, threshold: float = E_THRESHOLD) -> EProcess:
    """Return the e-value of the disagreements under a Beta(1/2, 1/2) mixture.

    2^D B(a_only + 1/2, b_only + 1/2) / B(1/2, 1/2), valid at any stopping time (Waudby-Smith and
    Ramdas, 2023) for one attempt per case and new cases only: a repeat of an old case is no new
    evidence about cases.
    """
    if a_only < 0 or b_only < 0:
        raise ValueError(f"{a_only} and {b_only} are not two counts of cases")
    from scipy.special import betaln

    log_e = float(
        (a_only + b_only) * math.log(2)
        + betaln(a_only + 0.5, b_only + 0.5)
        - math.log(math.pi)  # B(1/2, 1/2) is pi
    )
    e = math.exp(log_e) if log_e < 700 else math.inf
    return EProcess(e, log_e, log_e >= math.log(threshold))
