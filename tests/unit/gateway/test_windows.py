"""Usage windows by a clock of the test: declared ones, and what providers say."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_modelbench.gateway.windows import (
    MARGIN_SECONDS,
    Reading,
    UsageWindows,
    Used,
    reading_of_event,
    readings_of_headers,
)
from pytest_modelbench.records import UsageWindow

NOW = 1_800_000_000.0


def used(at: float, tokens: int = 0, requests: int = 1, usd: float = 0.0) -> Used:
    return Used(candidate="m", at=at, tokens=tokens, requests=requests, usd=usd)


def windows(*declared: UsageWindow, threshold: float = 0.8, allowance: float | None = None) -> Any:
    return UsageWindows(declared, threshold=threshold, allowance=allowance)


def test_declared_window_begins_with_its_first_use_and_is_empty_after_its_hours() -> None:
    mine = windows(UsageWindow(hours=5, tokens=1000))
    mine.add(used(NOW, 500), own=False)
    mine.add(used(NOW + 60, 299), own=True)
    assert mine.hold(NOW + 61) is None
    mine.add(used(NOW + 62, 1), own=True)
    hold = mine.hold(NOW + 63)
    assert (hold.why, hold.until) == ("80% of its window of 5 h is used", NOW + 5 * 3600)
    assert mine.hold(NOW + 5 * 3600) is None
    mine.add(used(NOW + 5 * 3600 + 10, 799), own=True)
    assert mine.hold(NOW + 5 * 3600 + 11) is None


def test_latest_reset_of_all_windows_that_hold() -> None:
    mine = windows(UsageWindow(hours=1, requests=1), UsageWindow(hours=2, usd=1.0))
    mine.add(used(NOW, usd=0.8), own=True)
    assert mine.hold(NOW).until == NOW + 7200


def test_allowance_bounds_what_this_run_uses_itself() -> None:
    mine = windows(UsageWindow(hours=5, tokens=1000), allowance=0.1)
    mine.add(used(NOW, 500), own=False)
    mine.add(used(NOW, 99), own=True)
    assert mine.hold(NOW) is None
    mine.add(used(NOW, 1), own=True)
    assert "this run has used 10% of its window of 5 h" in mine.hold(NOW).why


def codex(primary: int, secondary: int = 5, reset: float = NOW + 600) -> dict[str, str]:
    return {
        "x-codex-primary-used-percent": str(primary),
        "x-codex-primary-window-minutes": "300",
        "x-codex-primary-reset-at": str(int(reset)),
        "x-codex-secondary-used-percent": str(secondary),
        "x-codex-secondary-window-minutes": "10080",
        "x-codex-secondary-reset-at": str(int(NOW + 86400)),
    }


def test_providers_headers_count_whoever_used_it_and_the_newest_word_counts() -> None:
    mine = windows()
    mine.read(readings_of_headers(codex(79), NOW), NOW)
    assert mine.hold(NOW) is None
    mine.read(readings_of_headers(codex(80), NOW), NOW)
    hold = mine.hold(NOW)
    assert hold.until == NOW + 600 + MARGIN_SECONDS
    assert hold.why == "80% of the provider's window primary of 5 h is used"
    assert mine.hold(hold.until) is None
    mine.read(readings_of_headers(codex(10), NOW), NOW)
    assert mine.hold(NOW) is None


def test_allowance_counts_from_the_first_reading_of_each_window() -> None:
    mine = windows(allowance=0.1)
    mine.read(readings_of_headers(codex(40), NOW), NOW)
    mine.read(readings_of_headers(codex(49), NOW), NOW)
    assert mine.hold(NOW) is None
    mine.read(readings_of_headers(codex(50), NOW), NOW)
    assert "this run has used 10% of the provider's window primary" in mine.hold(NOW).why
    mine.read(readings_of_headers(codex(3, reset=NOW + 18600), NOW), NOW)
    assert mine.hold(NOW) is None


def test_a_window_that_is_reset_in_years_holds_nothing() -> None:
    mine = windows()
    week = Reading(name="seven_day", share=1.0, reset=NOW + 7 * 86400)
    years = Reading(name="made-up", share=1.0, reset=NOW + 1e9)
    mine.read([years], NOW)
    assert mine.hold(NOW) is None
    mine.read([week, years], NOW)
    assert mine.hold(NOW).until == week.reset + MARGIN_SECONDS


@pytest.mark.parametrize(
    ("info", "share"),
    [
        ({"status": "allowed", "utilization": 0.42}, 0.42),
        ({"status": "rejected"}, 1.0),
        ({"status": "allowed"}, None),
    ],
)
def test_event_of_an_agent_program(info: dict[str, Any], share: float | None) -> None:
    event: dict[str, Any] = {
        "type": "rate_limit_event",
        "rate_limit_info": {"resetsAt": NOW, "rateLimitType": "five_hour", **info},
    }
    wanted = None if share is None else Reading(name="five_hour", share=share, reset=NOW)
    assert reading_of_event(event) == wanted
    assert reading_of_event({"type": "result"}) is None
