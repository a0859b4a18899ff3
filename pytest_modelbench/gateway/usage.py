"""What one reply used, read from each provider's own words for it."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import JsonValue

from pytest_modelbench.parsing import amount
from pytest_modelbench.records import Record


class CallUsage(Record):
    """Tokens of one reply. None: the server did not say, which is never 0.

    ``input`` is all input, cached and cache-written tokens among it; ``output`` is all output,
    thinking among it. ``billed_usd`` is what the server says it charged.
    """

    input: int | None = None
    cached: int | None = None
    cache_written: int | None = None
    output: int | None = None
    reasoning: int | None = None
    billed_usd: float | None = None

    @property
    def metered(self) -> bool:
        """Tell whether both sums are known."""
        return self.input is not None and self.output is not None


UNKNOWN = CallUsage()

MOST_TOKENS = 10**12
"""Of one reply. More is no count."""


def read_usage(body: Mapping[str, JsonValue], *, reasoning_beside: bool = False) -> CallUsage:
    """Read the usage of a whole body, whichever of the known shapes it has.

    ``reasoning_beside`` is for providers that count thinking outside their output count (xAI).
    Whether cached tokens are inside or beside the input is known by the shape and never guessed
    from totals.
    """
    gemini = _object(body.get("usageMetadata"))
    if gemini:
        return _plausible(_gemini(gemini))
    usage = _object(body.get("usage")) or _object(_object(body.get("x_groq")).get("usage"))
    if not usage:
        return UNKNOWN
    if "prompt_tokens" in usage or "completion_tokens" in usage:
        return _plausible(_openai(usage, reasoning_beside))
    if "input_tokens_details" in usage or "output_tokens_details" in usage:
        return _plausible(_responses(usage))
    if "input_tokens" in usage or "output_tokens" in usage:
        return _plausible(_anthropic(usage))
    if "inputTokens" in usage or "outputTokens" in usage:
        return _plausible(_bedrock(usage))
    return UNKNOWN


def _openai(usage: Mapping[str, JsonValue], reasoning_beside: bool) -> CallUsage:
    """Read OpenAI's shape and its kin: vLLM, llama.cpp, OpenRouter, DeepSeek's cache counts."""
    inside = _object(usage.get("prompt_tokens_details"))
    thought = _object(usage.get("completion_tokens_details"))
    cached = _first(inside, "cached_tokens")
    if cached is None:
        cached = _first(usage, "prompt_cache_hit_tokens", "cache_read_input_tokens")
    written = _first(inside, "cache_write_tokens", "cache_creation_tokens")
    if written is None:
        written = _first(usage, "cache_creation_input_tokens")
    output = _first(usage, "completion_tokens")
    reasoning = _first(thought, "reasoning_tokens")
    if reasoning_beside and output is not None and reasoning is not None:
        output += reasoning
    return CallUsage(
        input=_first(usage, "prompt_tokens"),
        cached=cached,
        cache_written=written,
        output=output,
        reasoning=reasoning,
        billed_usd=amount(usage.get("cost")),
    )


def _responses(usage: Mapping[str, JsonValue]) -> CallUsage:
    return CallUsage(
        input=_first(usage, "input_tokens"),
        cached=_first(_object(usage.get("input_tokens_details")), "cached_tokens"),
        output=_first(usage, "output_tokens"),
        reasoning=_first(_object(usage.get("output_tokens_details")), "reasoning_tokens"),
    )


def _anthropic(usage: Mapping[str, JsonValue]) -> CallUsage:
    """Read Anthropic's shape: cached and cache-written tokens stand beside the input count."""
    cached = _first(usage, "cache_read_input_tokens")
    written = _first(usage, "cache_creation_input_tokens")
    fresh = _first(usage, "input_tokens")
    return CallUsage(
        input=None if fresh is None else fresh + (cached or 0) + (written or 0),
        cached=cached,
        cache_written=written,
        output=_first(usage, "output_tokens"),
    )


def _bedrock(usage: Mapping[str, JsonValue]) -> CallUsage:
    cached = _first(usage, "cacheReadInputTokens")
    written = _first(usage, "cacheWriteInputTokens")
    fresh = _first(usage, "inputTokens")
    return CallUsage(
        input=None if fresh is None else fresh + (cached or 0) + (written or 0),
        cached=cached,
        cache_written=written,
        output=_first(usage, "outputTokens"),
    )


def _gemini(usage: Mapping[str, JsonValue]) -> CallUsage:
    """Read Gemini's shape: cached inside the prompt count, thinking beside the candidates'."""
    prompt = _first(usage, "promptTokenCount")
    thoughts = _first(usage, "thoughtsTokenCount")
    candidates = _first(usage, "candidatesTokenCount")
    return CallUsage(
        input=None if prompt is None else prompt + (_first(usage, "toolUsePromptTokenCount") or 0),
        cached=_first(usage, "cachedContentTokenCount"),
        output=None
        if candidates is None and thoughts is None
        else (candidates or 0) + (thoughts or 0),
        reasoning=thoughts,
    )


def _plausible(usage: CallUsage) -> CallUsage:
    """Take an input of 0 for what it is, a count that was not made: every request has some."""
    if usage.input == 0:
        return CallUsage(billed_usd=usage.billed_usd)
    return usage


def _first(values: Mapping[str, JsonValue], *names: str) -> int | None:
    for name in names:
        value = values.get(name)
        if isinstance(value, bool):
            continue
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, int) and 0 <= value <= MOST_TOKENS:
            return value
    return None


def _object(value: JsonValue) -> Mapping[str, JsonValue]:
    return value if isinstance(value, dict) else {}
