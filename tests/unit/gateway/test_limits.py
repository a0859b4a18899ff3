"""Requests and tokens a minute: declared ones by a clock of the test, learned ones by headers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_modelbench.gateway.limits import DeclaredLimit, LearnedLimit, seconds_until


@given(
    calls=st.lists(st.tuples(st.floats(0, 20), st.integers(1, 80)), max_size=40),
    requests=st.none() | st.integers(1, 5),
    tokens=st.none() | st.integers(50, 150),
)
def test_no_minute_ever_sees_more_than_is_declared(
    calls: list[tuple[float, int]], requests: int | None, tokens: int | None
) -> None:
    limit = DeclaredLimit(requests, tokens)
    gone: list[tuple[float, int]] = []
    now = 0.0
    for pause, size in calls:
        now += pause
        wait = limit.wait(now, size)
        assert wait <= 60.0
        if wait > 0:
            assert limit.wait(now + wait * 0.99 - 1e-3, size) > 0, "the wait is no longer than due"
            now += wait + 1e-6
            assert limit.wait(now, size) == 0.0
        limit.take(now, size)
        gone.append((now, size))
        minute = [n for at, n in gone if at > now - 60]
        assert requests is None or len(minute) <= requests
        assert tokens is None or sum(minute) <= tokens or len(minute) == 1


def test_what_was_estimated_is_corrected_by_what_was_used() -> None:
    limit = DeclaredLimit(None, 100)
    first = limit.take(0.0, 90)
    assert limit.wait(1.0, 50) == 59.0
    limit.settle(first, 20)
    assert limit.wait(1.0, 50) == 0.0
    limit.settle(first, 100)
    assert limit.wait(1.0, 1) == 59.0


OPENAI = {
    "x-ratelimit-limit-requests": "60",
    "x-ratelimit-remaining-requests": "0",
    "x-ratelimit-reset-requests": "1m0s",
    "x-ratelimit-limit-tokens": "1000",
    "x-ratelimit-remaining-tokens": "400",
    "x-ratelimit-reset-tokens": "36s",
}
ANTHROPIC = {
    "anthropic-ratelimit-requests-limit": "60",
    "anthropic-ratelimit-requests-remaining": "0",
    "anthropic-ratelimit-requests-reset": "2026-01-01T00:01:00Z",
    "anthropic-ratelimit-tokens-limit": "1000",
    "anthropic-ratelimit-tokens-remaining": "400",
    "anthropic-ratelimit-tokens-reset": "2026-01-01T00:00:36Z",
}
NEW_YEAR = 1767225600.0


@pytest.mark.parametrize("headers", [OPENAI, ANTHROPIC])
def test_headers_say_when_the_next_call_may_go(headers: dict[str, str]) -> None:
    limit = LearnedLimit()
    assert limit.wait(0.0, 10**9) == 0
    limit.read(headers, now=100.0, wall=NEW_YEAR)
    assert limit.wait(100.0, 1) == pytest.approx(1.0), "60 requests come back within 60 s"
    assert limit.wait(101.0, 1) == pytest.approx(0.0)
    limit.take(101.0, 300)
    assert limit.wait(101.0, 1) == pytest.approx(1.0)
    assert limit.wait(102.0, 300) == pytest.approx((600 - 433.33) / 16.67, rel=0.01)
    assert limit.wait(300.0, 10**6) == pytest.approx((1000 - 700) / 16.67, rel=0.01)


def test_headers_without_a_reset_or_with_nonsense_hold_nobody() -> None:
    limit = LearnedLimit()
    for value in ("", "soon", "-1", "nan"):
        limit.read(
            {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": value},
            now=0.0,
            wall=0.0,
        )
    assert limit.wait(0.0, 1) == 0


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("6m0s", 360.0),
        ("120ms", 0.12),
        ("1h2m3.5s", 3723.5),
        ("7", 7.0),
        (str(int(NEW_YEAR) + 5), 5.0),
        (str(int(NEW_YEAR + 5) * 1000), 5.0),
        ("2026-01-01T00:00:05Z", 5.0),
        ("2025-01-01T00:00:05Z", 0.0),
        ("6m later", None),
        ("", None),
    ],
)
def test_every_form_of_a_reset(text: str, seconds: float | None) -> None:
    assert seconds_until(text, NEW_YEAR) == seconds


def test_rounding_makes_no_wait_longer_than_a_minute() -> None:
    limit = DeclaredLimit(1, None)
    limit.take(8.066475401214618, 1)
    assert limit.wait(8.066475401214618, 1) == 60.0
