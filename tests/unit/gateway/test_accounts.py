"""Prices, usage by provider, and the ledger that survives a crash."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_modelbench.gateway.ledger import Debit, Ledger
from pytest_modelbench.gateway.prices import own_server, price_of, price_table, table_version
from pytest_modelbench.gateway.usage import CallUsage, read_usage
from pytest_modelbench.gateway.wire import GrantRequest, Stop
from pytest_modelbench.records import Candidate, Limits

SECRET = "s" * 32


def test_listed_price_is_found_by_name_and_by_provider() -> None:
    listed = price_table()["gpt-4o-mini"]
    price = price_of(Candidate(name="m", model="openai/gpt-4o-mini"))
    assert price is not None
    assert price.source == table_version()
    assert price.input == listed["input_cost_per_token"]
    assert price.cached == listed["cache_read_input_token_cost"]
    assert price_of(Candidate(name="m", model="gpt-4o-mini")) == price
    assert price_of(Candidate(name="m", model="openai/no-such-model-9b")) is None
    assert price_of(Candidate(name="m", model="groq/gpt-4o-mini")) is None


def test_own_server_has_no_price_unless_told() -> None:
    own: Any = {"model": "openai/gpt-4o-mini", "api_base": "http://127.0.0.1:8000/v1"}
    assert price_of(Candidate(name="m", **own)) is None
    named = price_of(Candidate(name="m", list_price_of="gpt-4o-mini", **own))
    assert named is not None
    assert named.source == "list price of gpt-4o-mini"
    assert price_of(Candidate(name="m", list_price_of="no-such", **own)) is None
    free = price_of(Candidate(name="m", price={"input": 0, "output": 0}, **own))
    assert free is not None
    assert free.cost(CallUsage(input=5, output=5)) == 0.0


@pytest.mark.parametrize(
    ("base", "own"),
    [
        ("http://localhost:8000/v1", True),
        ("http://[::1]:80", True),
        ("http://192.168.1.4/v1", True),
        ("http://gpu0:8000", True),
        ("http://gpu.local", True),
        ("https://api.openai.com/v1", False),
        ("http://8.8.8.8", False),
        ("", False),
    ],
)
def test_own_servers(base: str, own: bool) -> None:
    assert own_server(base) is own


def test_tier_above_a_length_prices_the_whole_call() -> None:
    price = price_of(Candidate(name="m", model="gemini/gemini-2.5-pro"))
    entry = price_table()["gemini/gemini-2.5-pro"]
    assert price is not None
    low = price.cost(CallUsage(input=200_000, output=10))
    high = price.cost(CallUsage(input=200_001, output=10))
    one, other = entry["input_cost_per_token"], entry["input_cost_per_token_above_200k_tokens"]
    out, other_out = (
        entry["output_cost_per_token"],
        entry["output_cost_per_token_above_200k_tokens"],
    )
    assert isinstance(one, float) and isinstance(other, float)  # noqa: PT018  narrows for mypy
    assert isinstance(out, float) and isinstance(other_out, float)  # noqa: PT018  narrows for mypy
    assert low == pytest.approx(200_000 * one + 10 * out)
    assert high == pytest.approx(200_001 * other + 10 * other_out)


def test_cost_is_unknown_where_tokens_are() -> None:
    price = price_of(Candidate(name="m", price={"input": 1, "output": 2}))
    assert price is not None
    assert price.cost(CallUsage(input=5)) is None
    half = price_of(Candidate(name="m", price={"input": 1}))
    assert half is not None
    assert half.cost(CallUsage(input=5, output=5)) is None


@pytest.mark.parametrize(
    ("body", "right"),
    [
        ({"usage": {"prompt_tokens": 9, "completion_tokens": 2,
                    "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 1}}},
         CallUsage(input=9, cached=4, cache_written=1, output=2)),
        ({"usage": {"prompt_tokens": 9, "prompt_cache_hit_tokens": 4, "completion_tokens": 2}},
         CallUsage(input=9, cached=4, output=2)),
        ({"usage": {"input_tokens": 9, "cache_read_input_tokens": 4, "output_tokens": 2,
                    "cache_creation_input_tokens": 3}},
         CallUsage(input=16, cached=4, cache_written=3, output=2)),
        ({"usage": {"input_tokens": 9, "input_tokens_details": {"cached_tokens": 4},
                    "output_tokens": 2, "output_tokens_details": {"reasoning_tokens": 1}}},
         CallUsage(input=9, cached=4, output=2, reasoning=1)),
        ({"usage": {"inputTokens": 9, "cacheReadInputTokens": 4, "outputTokens": 2}},
         CallUsage(input=13, cached=4, output=2)),
        ({"usageMetadata": {"promptTokenCount": 9, "thoughtsTokenCount": 5,
                            "candidatesTokenCount": 2}},
         CallUsage(input=9, output=7, reasoning=5)),
        ({"usage": {"prompt_tokens": 9, "completion_tokens": 2, "cost": 0.25}},
         CallUsage(input=9, output=2, billed_usd=0.25)),
        ({"usage": {"prompt_tokens": 0, "completion_tokens": 0}}, CallUsage()),
        ({"usage": {"prompt_tokens": -1, "completion_tokens": True}}, CallUsage()),
        ({"usage": None}, CallUsage()),
        ({"usage": "many"}, CallUsage()),
        ({}, CallUsage()),
    ],
)  # fmt: skip
def test_usage_by_provider(body: dict[str, Any], right: CallUsage) -> None:
    assert read_usage(body) == right


def test_thinking_beside_the_output_is_added_only_where_a_provider_does_so() -> None:
    details = {"reasoning_tokens": 5}
    body: dict[str, Any] = {
        "usage": {"prompt_tokens": 9, "completion_tokens": 2, "completion_tokens_details": details}
    }
    assert read_usage(body).output == 2
    assert read_usage(body, reasoning_beside=True).output == 7


@pytest.fixture
def ledger(tmp_path: Path) -> Callable[[], Ledger]:
    """Opens the same ledger, as a gateway that was started again does."""

    def open_it() -> Ledger:
        price = price_of(Candidate(name="m", price={"input": 1, "output": 1}))
        return Ledger(tmp_path / "journal.jsonl", SECRET, {"m": price})

    return open_it


def debit(step: int, tries: int = 0, **more: Any) -> Debit:
    usage = CallUsage(input=10, output=2)
    return Debit(step=step, tries=tries, requests=1, **{"usage": usage, "usd": 0.5, **more})


def test_ledger_that_was_killed_knows_what_it_knew(ledger: Callable[[], Ledger]) -> None:
    first = ledger()
    account = first.open(GrantRequest(attempt="a", candidate="m", limits=Limits(tokens=20)))
    closed = first.open(GrantRequest(attempt="b", candidate="m"))
    first.debit(account, debit(1, usage=CallUsage(), usd=None, last=False, faulty=True, waited=1.5))
    first.debit(account, debit(1, tries=1, served_model="m-1"))
    first.close(closed)
    first.note_stop("m", Stop(reason="quota-exhausted"))
    again = ledger()
    mine = again.account(account.token)
    assert mine is not None
    assert mine.report() == account.report()
    assert mine.over() == ""
    again.debit(mine, debit(2))
    assert mine.over() == "token-limit"
    assert again.account(closed.token) is None
    assert again.stops == {"m": Stop(reason="quota-exhausted")}
    usage = mine.usage()
    assert (usage.requests, usage.calls, usage.retries, usage.waits) == (3, 2, 1, 1)
    assert (usage.input, usage.list_usd, usage.wait_seconds) == (20, 1.0, 1.5)


def test_torn_line_of_the_journal_costs_that_line_only(
    ledger: Callable[[], Ledger], tmp_path: Path
) -> None:
    first = ledger()
    account = first.open(GrantRequest(attempt="a", candidate="m"))
    first.debit(account, debit(1))
    first.debit(account, debit(2))
    journal = tmp_path / "journal.jsonl"
    journal.write_bytes(journal.read_bytes()[:-9])
    again = ledger()
    mine = again.account(account.token)
    assert mine is not None
    assert mine.usage().calls == 1
    again.debit(mine, debit(3))
    final = ledger().account(account.token)
    assert final is not None
    assert final.usage().calls == 2


@given(
    st.lists(st.tuples(st.integers(1, 6), st.integers(0, 2), st.booleans()), max_size=30),
    st.randoms(),
)
def test_no_debit_counts_twice_in_any_order(
    asked: list[tuple[int, int, bool]], random: Any
) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        book = Ledger(Path(folder) / "journal.jsonl", SECRET, {})
        account = book.open(GrantRequest(attempt="a", candidate="m"))
        whole = {(step, tries): debit(step, tries, last=tries == 2) for step, tries, _ in asked}
        # A try comes before the one that ends its step; steps come in any order.
        order = sorted(whole, key=lambda key: (random.random(), key[1]))
        by_step = {s: iter(sorted(k for k in whole if k[0] == s)) for s in {k[0] for k in whole}}
        for step, _ in order:
            once = whole[next(by_step[step])]
            book.debit(account, once)
            if random.random() < 0.5:
                book.debit(account, once)
        again = Ledger(Path(folder) / "journal.jsonl", SECRET, {}).account(account.token)
        assert again is not None
        for one in (account, again):
            assert one.usage().requests == len(whole)
            assert (one.usage().input or 0) == 10 * len(whole)


def test_tokens_of_two_grants_differ(ledger: Callable[[], Ledger]) -> None:
    book, grant = ledger(), GrantRequest(attempt="a", candidate="m")
    one, other = book.open(grant), book.open(grant)
    assert one.token != other.token
    assert SECRET not in json.dumps([one.token, other.token])
