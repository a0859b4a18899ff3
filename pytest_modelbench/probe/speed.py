"""How fast a candidate's server is, alone and with several requests at once."""

from __future__ import annotations

import statistics
import time
from concurrent.futures import ThreadPoolExecutor

from pydantic import JsonValue

from pytest_modelbench.probe.asking import Answer, Asking
from pytest_modelbench.probe.finding import Finding, State

TOKENS = 48
WIDTHS = (1, 2, 4, 8)
GAIN = 1.1
"""Less than this and more requests at once bring nothing."""


def speed(ask: Asking, widths: tuple[int, ...] = WIDTHS) -> Finding:
    """Measure output tokens a second and the latency of a call, with several in flight."""
    rates: dict[int, float] = {}
    latency: dict[int, float] = {}
    for width in widths:
        began = time.monotonic()
        with ThreadPoolExecutor(width) as pool:
            answers = list(pool.map(lambda number: _one(ask, number), range(width)))
        seconds = time.monotonic() - began
        made = [_tokens(answer) for answer in answers]
        known = [count for count in made if count is not None]
        if len(known) < width:
            break
        rates[width] = sum(known) / seconds
        latency[width] = statistics.median(answer.seconds for answer in answers)
    if not rates:
        text = "not measured: calls failed, or the server counts no tokens"
        return Finding(name="speed", state=State.UNKNOWN, text=text)
    best = 1
    for width, rate in rates.items():
        if rate > GAIN * rates.get(best, rate):
            best = width
    shown = ", ".join(f"{width}: {rate:.1f}" for width, rate in rates.items())
    waits = ", ".join(f"{width}: {seconds:.1f}" for width, seconds in latency.items())
    facts: dict[str, JsonValue] = {
        "tokens_per_second": {str(width): round(rate, 2) for width, rate in rates.items()},
        "seconds_per_call": {str(width): round(one, 3) for width, one in latency.items()},
        "concurrency": best,
    }
    missing = [str(width) for width in widths if width not in rates]
    return Finding(
        name="speed",
        state=State.PARTLY if missing else State.YES,
        text=f"output tokens/s by requests in flight {shown}; seconds a call of {TOKENS} tokens "
        f"{waits}" + (f"; with {', '.join(missing)} in flight calls failed" if missing else ""),
        remedy=f"more than {best} at once bring nothing: concurrency = {best} of its server"
        if best < max(widths)
        else "",
        facts=facts,
    )


def _one(ask: Asking, number: int) -> Answer:
    prompt = f"Count upwards from {number * 100 + 1}, one number a line, to {number * 100 + 99}."
    return ask(prompt, max_tokens=TOKENS, temperature=0)


def _tokens(answer: Answer) -> int | None:
    return answer.reply.usage.output if answer.reply is not None else None
