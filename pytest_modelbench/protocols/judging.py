"""A judge's part of an attempt: a grant of its own at the gateway, apart from the candidate's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from pytest_modelbench.candidates.journal import Journal
from pytest_modelbench.checks.judge import Seat
from pytest_modelbench.errors import Fault
from pytest_modelbench.packs.model import Case
from pytest_modelbench.protocols.protocol import Services
from pytest_modelbench.records import Limits, Role

N = TypeVar("N", int, float)


def attempt_grant(case: Case, services: Services, work: Limits) -> Limits | None:
    """Return tokens and usd of a whole attempt: the work's and the judging's; None for no judge.

    ``work`` is the candidate's part. What it leaves of it is there for the judge.
    """
    if not case.check.judge:
        return None
    judge = services.judge(case).limits
    return Limits(tokens=_sum(work.tokens, judge.tokens), usd=_sum(work.usd, judge.usd))


@contextmanager
def seated(case: Case, services: Services, journal: Journal) -> Iterator[Seat | None]:
    """Open a judge's grant for one grading; None for a case without a judge.

    When it ends the journal has what the judge used, also where it gave no score.
    """
    if not case.check.judge:
        yield None
        return
    judge = services.judge(case)
    if services.gateway is None:
        raise Fault(
            "gateway", f"judge {judge.name} is to be asked and no gateway runs", stage="grade"
        )
    whole, own = journal.grant, judge.limits
    if whole is not None:
        # Where the attempt's grant has a bound, what is left of it is the judge's.
        own = Limits(
            tokens=own.tokens if whole.tokens is None else None,
            usd=own.usd if whole.usd is None else None,
        )
    try:
        session = services.gateway.grant(
            journal.attempt, judge.name, Role.JUDGE, case.id, journal.repeat, own, whole
        )
    except Fault as fault:
        text = f"the judge {judge.name} cannot be asked: {fault.kind}: {fault.text}"
        raise Fault("judge", text, stage="grade", status=fault.status) from fault
    try:
        yield Seat(socket=services.gateway.socket_path, token=session.token, name=judge.name)
    finally:
        ended = session.close()
        journal.usage[Role.JUDGE] = ended.usage
        journal.versions["judge"] = ended.served_model or judge.model
        journal.held += ended.held_seconds
        journal.judged = ended.transcript


def _sum(one: N | None, other: N | None) -> N | None:
    return None if one is None or other is None else one + other
