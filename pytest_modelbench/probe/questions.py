"""The questions of a probe: each asks the server once or twice and says what was seen."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pydantic import JsonValue

from pytest_modelbench.gateway.prices import own_server, price_table
from pytest_modelbench.parsing import parse
from pytest_modelbench.probe.asking import MISNAMED, STREAMED, Answer, Asking, numbers_in
from pytest_modelbench.probe.finding import Finding, State
from pytest_modelbench.records import Candidate

TRIES = 2
"""How often a model is asked for what it may fail by chance."""

LONGEST_WORDS = 300_000

_WEATHER: dict[str, JsonValue] = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Get the weather of a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
    },
}
_PARSER = (
    "start the server with its tool parser and a template for tools (vLLM: "
    "--enable-auto-tool-choice --tool-call-parser NAME; llama.cpp: --jinja), or set "
    'tuning.tool_parser = "hermes" or "json"'
)


def alive(ask: Asking) -> Finding:
    """Ask for one word."""
    answer = ask("Say: yes", max_tokens=8)
    if answer.reply is None:
        return Finding(
            name="alive",
            state=State.NO,
            text=answer.trouble,
            remedy="start the server, or correct api_base, model and api_key_env of the candidate",
        )
    text = f"answered in {answer.seconds:.2f} s" + (
        f" ({answer.trouble})" if answer.trouble else ""
    )
    return Finding(
        name="alive", state=State.YES, text=text, facts={"first_answer_seconds": answer.seconds}
    )


def served_model(ask: Asking, candidate: Candidate) -> Iterator[Finding]:
    """See which model answers, and whether a wrong name is refused."""
    answer = ask("Say: yes", max_tokens=2)
    reply = answer.reply
    named = reply.served_model if reply is not None else ""
    if not named:
        yield Finding(name="served model", state=State.UNKNOWN, text="the server names no model")
    elif reply is not None and reply.reason == "other-model":
        yield Finding(
            name="served model",
            state=State.NO,
            text=f"asked for {candidate.model}, {named} answered",
            remedy=f'correct model, or say it is the same: facts = {{ served_as = "{named}" }}',
            facts={"served_model": named},
        )
    else:
        yield Finding(
            name="served model", state=State.YES, text=named, facts={"served_model": named}
        )
    wrong = ask("Say: yes", kind=MISNAMED, max_tokens=2)
    if wrong.reply is not None:
        yield Finding(
            name="refuses a wrong name",
            state=State.NO,
            text="the server answers to any name: a typing error in `model` would not be noticed",
            remedy="compare the server's own list of models with what is meant",
        )
    else:
        yield Finding(name="refuses a wrong name", state=State.YES, text=wrong.trouble[:160])


def window(ask: Asking, candidate: Candidate) -> Finding:
    """Find the context window by a prompt that is too long for it: who refuses it says the size.

    Where the price table lists the model its window bounds the prompt, for it may be paid for.
    """
    listed = price_table().get(candidate.model, {}).get("max_input_tokens")
    own = own_server(candidate.api_base)
    if not own and not isinstance(listed, int):
        return Finding(
            name="context window",
            state=State.UNKNOWN,
            text="not asked for: a prompt that long may be paid for",
            remedy="declare facts.max_input_tokens",
        )
    words = min(LONGEST_WORDS, int(listed * 1.1) + 1000 if isinstance(listed, int) else 10**9)
    answer = ask("a " * words, max_tokens=1)
    reply = answer.reply
    if reply is not None and reply.reason == "context-exceeded":
        size = next(numbers_in(answer.raw, "n_ctx"), None) or _size_in(answer.raw, words)
        if size is None:
            return Finding(name="context window", state=State.PARTLY, text=reply.quote)
        return _window(size, candidate)
    if answer.answered or (reply is not None and reply.reason == "empty-answer"):
        seen = reply.usage.input if reply is not None else None
        if seen is not None and seen < words // 2:
            return Finding(
                name="context window",
                state=State.NO,
                text=f"the server cut a prompt of {words} words to {seen} tokens without a word",
                remedy="make it refuse instead, or raise its context (Ollama: num_ctx)",
                facts={"truncates": True, "context_tokens": seen},
            )
        text = f"a prompt of {words} words fits"
        return Finding(name="context window", state=State.YES, text=text)
    return Finding(
        name="context window",
        state=State.UNKNOWN,
        text=answer.trouble[:160],
        remedy="declare tuning.context_tokens",
    )


def _window(size: int, candidate: Candidate) -> Finding:
    tuned = candidate.tuning.get("context_tokens")
    text, remedy = f"{size} tokens", ""
    if isinstance(tuned, int) and tuned > size:
        text += f", and {tuned} are declared"
    if not isinstance(tuned, int) or tuned > size:
        remedy = f"declare it: tuning = {{ context_tokens = {size} }}"
    larger = isinstance(tuned, int) and tuned > size
    return Finding(
        name="context window",
        state=State.NO if larger else State.YES,
        text=text,
        remedy=remedy,
        facts={"context_tokens": size},
    )


def _size_in(raw: str, asked: int) -> int | None:
    """Read a window from a server's words: the number beside the word, never the prompt's own."""
    for pattern in (
        r"(?:maximum|max)[^.\d]{0,60}?(?:length|len|window|size|tokens)[^.\d]{0,20}?(\d[\d,]{2,})",
        r"context (?:length|window|size)[^.\d]{0,20}?(\d[\d,]{2,})",
        r"> (\d[\d,]{2,}) maximum",
    ):
        for found in re.finditer(pattern, raw, re.IGNORECASE):
            size = int(found[1].replace(",", ""))
            if size < asked:
                return size
    return None


def tools(ask: Asking) -> Iterator[Finding]:
    """Ask for tool calls: of its own choice, forced, two at once, and with their results."""
    prompt = "What is the weather in Oslo? Use the tool."
    made = [ask(prompt, tools=[_WEATHER], max_tokens=256, seed=n) for n in range(TRIES)]
    yield _calls("tool calls", made)
    forced = ask(prompt, tools=[_WEATHER], max_tokens=256, tool_choice="required")
    yield _calls("tool calls, required", [forced])
    both = ask(
        "What is the weather in Oslo and in Rome? Call the tool once for each city, both at once.",
        tools=[_WEATHER],
        max_tokens=256,
    )
    count = len(both.reply.tool_calls) if both.reply is not None else 0
    yield Finding(
        name="tool calls, parallel",
        state=State.YES if count >= 2 else State.NO,
        text=f"{count} calls in one reply" if both.reply is not None else both.trouble,
    )
    call: JsonValue = {
        "id": "call00001",
        "type": "function",
        "function": {"name": "get_weather", "arguments": '{"city": "Oslo"}'},
    }
    history: list[JsonValue] = [
        {"role": "user", "content": prompt},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call00001", "content": "17 degrees, rain"},
    ]
    answer = ask(history, tools=[_WEATHER], max_tokens=128)
    text = (answer.reply.answer or "") if answer.reply is not None else ""
    state = State.YES if "17" in text else State.PARTLY if answer.answered else State.NO
    seen = "uses the result" if "17" in text else text[:80] or answer.trouble[:160] or "no text"
    yield Finding(name="tool results", state=state, text=seen)


def _calls(name: str, answers: list[Answer]) -> Finding:
    replies = [answer.reply for answer in answers if answer.reply is not None]
    good = sum(1 for r in replies if r.tool_calls and r.tool_calls[0].name == "get_weather")
    if good:
        sound = sum(1 for r in replies if any(call.arguments for call in r.tool_calls))
        state = State.YES if good == len(answers) == sound else State.PARTLY
        return Finding(name=name, state=state, text=f"{good} of {len(answers)} asked")
    if any(r.reason == "tool-call-as-text" for r in replies):
        text = "calls come back as text: the server does not read them"
        return Finding(name=name, state=State.NO, text=text, remedy=_PARSER)
    seen = next((a.trouble for a in answers if a.trouble), "") or "it answered in prose"
    return Finding(name=name, state=State.NO, text=seen[:160], remedy=_PARSER)


def schema(ask: Asking) -> Finding:
    """Ask for an answer by a JSON schema."""
    shape: JsonValue = {
        "type": "object",
        "properties": {"city": {"type": "string"}, "people": {"type": "integer"}},
        "required": ["city", "people"],
        "additionalProperties": False,
    }
    wanted: JsonValue = {
        "type": "json_schema",
        "json_schema": {"name": "city", "schema": shape, "strict": True},
    }
    answer = ask("Tell me about Oslo.", response_format=wanted, max_tokens=128)
    text = (answer.reply.answer or "") if answer.reply is not None else ""
    try:
        value = parse(text)
    except ValueError:
        value = None
    held = isinstance(value, dict) and set(value) == {"city", "people"}
    return Finding(
        name="JSON schema",
        state=State.YES if held else State.NO,
        text="held" if held else answer.trouble[:160] or f"not held: {text[:80]}",
    )


def streaming(ask: Asking) -> Finding:
    """Ask for a stream with its usage at the end."""
    answer = ask("Say: yes", kind=STREAMED, max_tokens=8)
    if answer.reply is None:
        return Finding(name="streaming", state=State.NO, text=answer.trouble[:160])
    if not answer.raw.lstrip().startswith(("data:", "event:", ":")):
        text = "asked for a stream, and the reply came whole"
        return Finding(name="streaming", state=State.PARTLY, text=text)
    metered = answer.reply.usage.metered
    return Finding(
        name="streaming",
        state=State.YES if metered else State.PARTLY,
        text="with usage" if metered else "without usage: tokens of streamed replies are unknown",
    )


def caching(ask: Asking) -> Finding:
    """Send one prompt twice and see whether cached tokens are counted."""
    prompt = "Remember these words. " + "apple pear plum cherry " * 120 + "Say: yes"
    ask(prompt, max_tokens=2)
    answer = ask(prompt, max_tokens=2)
    if answer.reply is None:
        return Finding(name="cached tokens", state=State.UNKNOWN, text=answer.trouble[:160])
    usage = answer.reply.usage
    if usage.cached is None:
        text = "the server does not say: a cached prompt is paid in full in our count"
        return Finding(name="cached tokens", state=State.NO, text=text)
    text = f"{usage.cached} of {usage.input} on the second call"
    state = State.YES if usage.cached else State.PARTLY
    return Finding(name="cached tokens", state=state, text=text)


def seeds(ask: Asking) -> Finding:
    """See whether a seed at temperature 1 repeats an answer, and another one differs."""
    prompt = "Write one sentence about an animal of your choice."

    def drawn(seed: int) -> str | None:
        answer = ask(prompt, temperature=1, seed=seed, max_tokens=24)
        reply = answer.reply
        return None if reply is None else (reply.answer or reply.reasoning or "")

    one, again, other = drawn(11), drawn(11), drawn(12)
    if one is None or again is None or other is None:
        text = "the server refuses a seed or a temperature of 1"
        return Finding(name="seeds", state=State.NO, text=text, remedy="leave seed out of params")
    if one != again:
        text = "the same seed gives another answer"
        return Finding(name="seeds", state=State.NO, text=text)
    if one == other:
        text = "another seed gives the same answer: repeats may not differ"
        return Finding(name="seeds", state=State.PARTLY, text=text)
    return Finding(name="seeds", state=State.YES, text="repeats with a seed, one call at a time")
