"""Money, tokens, times and counts as short text; unknown is ``?`` and never 0."""

from __future__ import annotations

from collections.abc import Mapping

UNKNOWN = "?"


def money(usd: float | None) -> str:
    """Format dollars without the sign: 3 digits that count, and never 0 for what is not."""
    if usd is None:
        return UNKNOWN
    if usd == 0:
        return "0"
    if usd >= 0.995:
        return f"{usd:,.2f}"
    if usd < 0.00005:
        return f"{usd:.1e}"
    text = f"{usd:.4f}" if usd < 0.0995 else f"{usd:.3f}"
    return text.removeprefix("0")


def dollars(usd: float | None) -> str:
    """Format a sum of dollars with its sign: ``$0.31``, ``$1,204.50``, ``$0.0021``."""
    if usd is None:
        return UNKNOWN
    if usd == 0 or usd >= 0.0995:
        return f"${usd:,.2f}"
    text = money(usd)
    return f"$0{text}" if text.startswith(".") else f"${text}"


def tokens(given: float | None, made: float | None) -> str:
    """Format mean input and output tokens of an attempt: ``4.3k+210``."""
    if given is None or made is None:
        return UNKNOWN
    return f"{thousands(given)}+{thousands(made)}"


def duration(seconds: float | None) -> str:
    """Format a working time in seconds."""
    if seconds is None:
        return UNKNOWN
    if seconds < 0.995:
        return f"{seconds:.2f}"
    return f"{seconds:.1f}" if seconds < 9.95 else f"{seconds:,.0f}"


def plural(count: int, noun: str) -> str:
    """Return a count with its noun, ``s`` added for all but 1."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def scores_in_words(scores: Mapping[str, float]) -> str:
    """Return shares by name as percent: ``live 61.2 %, irrelevance 80.0 %``."""
    return ", ".join(f"{name} {100 * share:.1f} %" for name, share in scores.items())


def measures_in_words(measures: Mapping[str, float]) -> str:
    """Return means that nothing is decided by: ``mean r-ves 87.5 (decides nothing)``."""
    told = ", ".join(f"mean {name} {value:.4g}" for name, value in measures.items())
    return f"{told} (decides nothing)"


def clock(seconds: float) -> str:
    """Format a long time: ``12 s``, ``4:10``, ``1:02:11``."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:,}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def thousands(count: float) -> str:
    """Format a count of tokens: ``210``, ``4.3k``, ``1.2M``."""
    for size, unit in ((1e6, "M"), (1e3, "k")):
        if count >= size * 0.9995:
            return (
                f"{count / size:.1f}{unit}" if count < 99.95 * size else f"{count / size:.0f}{unit}"
            )
    return f"{count:.0f}"
