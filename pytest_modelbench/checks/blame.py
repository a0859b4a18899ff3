"""Blame: a check that did not pass is the candidate's doing (not passed) or ours (a fault)."""

from __future__ import annotations

import errno
from dataclasses import dataclass

import pytest

from pytest_modelbench.checks.failures import CandidateError, GraderBroken

_OURS = {errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO}


@dataclass(frozen=True)
class Blame:
    """``reason`` is short and stable, and quotes nothing of the check."""

    ours: bool
    reason: str


def blame(error: BaseException, touched: bool) -> Blame:
    """Say whose doing an exception in a hidden check is.

    ``touched``: the check has had something from the candidate by then. A ``TypeError`` on an odd
    value is the candidate's doing; the same before anything came from it is a broken check. A name
    that does not exist is always a broken check, and so is a machine without room.
    """
    if isinstance(error, BaseExceptionGroup):
        leaves = [blame(leaf, touched) for leaf in error.exceptions]
        return next((leaf for leaf in leaves if leaf.ours), leaves[0])
    reason = type(error).__name__
    if isinstance(error, GraderBroken):
        return Blame(True, "grader")
    if isinstance(error, CandidateError):
        return Blame(False, error.reason)
    if isinstance(error, AssertionError | pytest.fail.Exception):
        return Blame(False, "AssertionError")
    if isinstance(error, ImportError | SyntaxError | pytest.FixtureLookupError):
        return Blame(True, reason)
    if isinstance(error, NameError) and not isinstance(error, UnboundLocalError):
        return Blame(True, reason)
    if isinstance(error, OSError) and error.errno in _OURS:
        return Blame(True, reason)
    return Blame(not touched, reason)
