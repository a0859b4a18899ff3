"""The tuning of a candidate: how the agent loop treats its model."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from pytest_modelbench.records import Candidate, Record


class Tuning(Record):
    """``[candidates.NAME.tuning]``, part of the candidate's identity."""

    context_tokens: int | None = Field(
        default=None, gt=0, description="the model's window; else what its facts declare"
    )
    answer_tokens: int = Field(
        default=1024, gt=0, description="of the window, kept free for the answer"
    )
    chars_per_token: float = Field(
        default=3.0, gt=0, description="for estimating how full the window is"
    )
    tool_choice: Literal["auto", "required"] | None = Field(
        default=None, description="sent only when declared: not every server takes it"
    )
    tool_parser: Literal["hermes", "json", "text"] | None = Field(
        default=None,
        description="reads calls that this model's server leaves in the text; text: the server "
        "takes no tools, and they are told in words",
    )
    failure_limit: int = Field(
        default=10, gt=0, description="failed, unreadable and invented calls in a row"
    )
    repeat_limit: int = Field(default=5, gt=1, description="the same call in a row")
    prose_limit: int = Field(default=3, gt=0, description="replies without a call in a row")

    @classmethod
    def of(cls, candidate: Candidate) -> Tuning:
        """Return the tuning that a candidate declares, defaults for the rest."""
        return cls.model_validate(candidate.tuning, strict=True)

    def window(self, candidate: Candidate) -> int | None:
        """Return the context window in tokens: as tuned, else as the facts say, else None."""
        if self.context_tokens is not None:
            return self.context_tokens
        for fact in ("context_tokens", "max_input_tokens", "context_window", "n_ctx"):
            value = candidate.facts.get(fact)
            if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                return value
        return None
