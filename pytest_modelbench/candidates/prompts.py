"""What the agent loop says to a model: short and plain, since small models read it too."""

from __future__ import annotations

from collections.abc import Sequence

SYSTEM = """\
You are a programmer. The files of your project are in the folder /work. You work by calling tools.
- Look at the files before you change them.
- Make the change in the files themselves; a change that you only describe is not made.
- Every reply must call a tool. Nobody reads your other text and nobody answers questions.
- When the task is done, call finish."""

PROSE = (
    "Your reply had no tool call, so nothing was done. Do the next step by calling a tool. "
    "If the task is done, call finish."
)
AS_TEXT = (
    "You wrote a tool call as text, so it was not run. Make the call with the tool-calling "
    "interface, not in the text of your reply."
)
REPEATED = (
    "[This was the same call as the one before. Do something else now. "
    "If the task is done, call finish.]"
)
TOO_EARLY = (
    "You are not finished: a call before this one, in the same reply, failed. See its result. "
    "Call finish again when the task is done."
)
ONLY_THOUGHT = (
    "Your reply was empty after its reasoning. Do the next step by calling a tool. "
    "If the task is done, call finish."
)


def unknown_tool(name: str, known: Sequence[str]) -> str:
    """Say that a tool does not exist, and which do."""
    listed = ", ".join(known)
    return f"There is no tool named {name!r}. The tools are: {listed}. Nothing was done."


def unreadable(problem: str) -> str:
    """Say that a call's arguments cannot be read, why and where."""
    return (
        f"The arguments of this call cannot be read: {problem}. Nothing was done. "
        "Make the call again with arguments that are one JSON object."
    )


def trimmed(characters: int) -> str:
    """Say that an old output is gone from the conversation."""
    return f"[{characters} characters of old output removed to save room]"


def clip(text: str, limit: int, total: int | None = None) -> str:
    """Return a text of at most about ``limit`` characters: its head and its tail, and what was cut.

    ``total`` is the length of the whole where ``text`` is itself only its head and tail.
    """
    whole = len(text) if total is None else max(total, len(text))
    if whole <= limit:
        return text
    head = limit // 2
    tail = limit - head
    return (
        f"{text[:head]}\n[... {whole - limit} of {whole} characters cut here: this is only the"
        f" beginning and the end ...]\n{text[-tail:]}"
    )
