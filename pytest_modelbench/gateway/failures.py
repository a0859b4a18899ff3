"""What an error that a server sent means: try again, give this candidate up, or a failed result."""

from __future__ import annotations

import email.utils
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from pydantic import JsonValue

QUOTE_CHARS = 240


class ReplyOutcome(StrEnum):
    """What a reply is good for.

    ``fault-transient``: no verdict, try again. ``fault-permanent``: no verdict, admit no further
    cell of this candidate. ``result-fail``: a verdict, not passed, without another try.
    """

    ANSWER = "answer"
    TOOL_CALLS = "tool_calls"
    TRANSIENT = "fault-transient"
    PERMANENT = "fault-permanent"
    RESULT_FAIL = "result-fail"


@dataclass(frozen=True)
class Failure:
    """An error classified. ``retry``: asking the same again, after ``wait`` seconds, may help."""

    outcome: ReplyOutcome
    reason: str
    quote: str = ""
    retry: bool = False
    wait: float | None = None


def read_failure(
    status: int,
    headers: Mapping[str, str],
    body: JsonValue,
    text: str,
    *,
    now: float,
    relayed: bool = False,
) -> Failure:
    """Classify an error by its code, its words and its status, in this order.

    ``headers`` have lower-case names. ``body`` is the JSON of the body, None where it has none.
    ``relayed``: the error came inside a reply of status 200, so a server behind the server failed.
    ``now`` is the time in seconds since the epoch, for waits given as dates.
    """
    error = _Error.read(body, text)
    wait = _wait(headers, error, now)
    quote = _quote(error.message or text)
    if status != 429 and error.says(_CONTEXT_CODES, _CONTEXT_WORDS):
        return Failure(ReplyOutcome.RESULT_FAIL, "context-exceeded", quote)
    if error.says(_FILTER_CODES, _FILTER_WORDS):
        return Failure(ReplyOutcome.RESULT_FAIL, "content-filter", quote)
    if error.codes & _QUOTA_CODES or (
        # A rate limit that resets is told in the same words by some; the wait tells them apart.
        wait is None and status in (400, 402, 403, 429) and _QUOTA_WORDS.search(error.message)
    ):
        return Failure(ReplyOutcome.PERMANENT, "quota-exhausted", quote)
    if status == 429 or error.codes & _RATE_CODES:
        return Failure(ReplyOutcome.TRANSIENT, "rate-limited", quote, True, wait)
    if status == 402:
        return Failure(ReplyOutcome.PERMANENT, "quota-exhausted", quote)
    if status == 401 or error.codes & _KEY_CODES:
        return Failure(ReplyOutcome.PERMANENT, "unauthorised", _without_keys(quote))
    if status == 403:
        return Failure(ReplyOutcome.PERMANENT, "forbidden", _without_keys(quote))
    if error.codes & _MODEL_CODES or (
        status in (400, 404, 422) and _MODEL_WORDS.search(error.message)
    ):
        return Failure(ReplyOutcome.PERMANENT, "unknown-model", quote)
    if status == 404:
        return Failure(ReplyOutcome.PERMANENT, "not-found", quote)
    if status in (400, 500) and _TEMPLATE_WORDS.search(error.message):
        return Failure(ReplyOutcome.PERMANENT, "template-refused", quote)
    if status == 413:
        return Failure(ReplyOutcome.RESULT_FAIL, "context-exceeded", quote)
    return _by_status(status, error, quote, wait, relayed)


def _by_status(
    status: int, error: _Error, quote: str, wait: float | None, relayed: bool
) -> Failure:
    if status in (408, 409, 423, 425) or status >= 500:
        if status == 503 and _LOADING_WORDS.search(error.message):
            reason = "loading"
        elif relayed:
            reason = "upstream-error"
        elif status == 501:
            return Failure(ReplyOutcome.PERMANENT, "not-implemented", quote)
        else:
            reason = _REASONS.get(status, "server-error")
        return Failure(ReplyOutcome.TRANSIENT, reason, quote, True, wait)
    if relayed:
        return Failure(ReplyOutcome.TRANSIENT, "upstream-error", quote, True, wait)
    if 300 <= status < 400:
        return Failure(ReplyOutcome.PERMANENT, "redirected", quote)
    # The server can read this request no better next time; other cases may well be served.
    return Failure(ReplyOutcome.TRANSIENT, "bad-request", quote)


_REASONS = {
    408: "timeout",
    409: "conflict",
    423: "locked",
    425: "too-early",
    500: "server-error",
    502: "bad-gateway",
    503: "unavailable",
    504: "gateway-timeout",
    520: "bad-gateway",
    521: "bad-gateway",
    522: "gateway-timeout",
    523: "bad-gateway",
    524: "gateway-timeout",
    529: "overloaded",
}

_CONTEXT_CODES = frozenset({"context_length_exceeded", "exceed_context_size_error"})
_CONTEXT_WORDS = re.compile(
    r"(?:maximum|max) (?:context|prompt|model|input|sequence) (?:length|size|len)"
    r"|maximum model length|max_model_len|max_seq_len"
    r"|context (?:length|window|size|limit)"
    r"|exceeds? the (?:available )?context|longer than the context|n_ctx"
    r"|(?:prompt|input|request|conversation) is too long(?! ago)"
    r"|input token count .{0,40}exceeds"
    r"|(?:inputs?|prompt)`?[ _]tokens .{0,60}(?:must be|exceeds?|larger than|greater than)"
    r"|reduce the length of the (?:messages|prompt|input)"
    r"|too many (?:input )?tokens(?! per)"
    r"|token limit exceeded|exceeds? (?:the )?(?:maximum )?(?:number of )?"
    r"(?:input )?tokens? (?:limit|allowed)",
    re.IGNORECASE | re.DOTALL,
)
_FILTER_CODES = frozenset({"content_filter", "content_policy_violation", "moderation_blocked"})
_FILTER_WORDS = re.compile(
    r"content (?:management|filtering) policy|flagged by (?:our |the )?(?:moderation|content)"
    r"|requires moderation",
    re.IGNORECASE,
)
_QUOTA_CODES = frozenset(
    {
        "insufficient_quota",
        "billing_hard_limit_reached",
        "billing_not_active",
        "insufficient_balance",
        "insufficient_credits",
        "credit_balance_too_low",
        "budget_exceeded",
        "account_deactivated",
    }
)
_QUOTA_WORDS = re.compile(
    r"insufficient (?:balance|credits?|funds|quota)|credit balance is too low"
    r"|(?:used up|exceeded|exhausted) (?:its|your|the)(?: current| monthly)? "
    r"(?:quota|credits?|budget)"
    r"|out of credits|budget has been exceeded",
    re.IGNORECASE,
)
_RATE_CODES = frozenset({"rate_limit_exceeded", "rate_limit_error", "throttlingexception"})
_KEY_CODES = frozenset({"invalid_api_key", "authentication_error", "incorrect_api_key"})
_MODEL_CODES = frozenset({"model_not_found", "unknown_model", "deploymentnotfound"})
_MODEL_WORDS = re.compile(
    r"model [`'\"]?[\w./:@-]+[`'\"]? (?:does not exist|not found|is not found|is not supported)"
    r"|(?:unknown|invalid|no such) model\b|not a valid model|model not found",
    re.IGNORECASE,
)
_TEMPLATE_WORDS = re.compile(
    r"chat[ _]template|jinja|conversation roles must alternate|template error", re.IGNORECASE
)
_LOADING_WORDS = re.compile(
    r"loading|warming up|starting|currently being (?:loaded|deployed)|not (?:yet )?ready", re.I
)


@dataclass(frozen=True)
class _Error:
    codes: frozenset[str]
    message: str
    retry_delay: float | None = None

    @staticmethod
    def read(body: JsonValue, text: str) -> _Error:
        """Find code and words, wherever this server puts them."""
        if isinstance(body, list) and body:
            body = body[0]
        if not isinstance(body, dict):
            return _Error(frozenset(), _without_markup(text))
        inner = body.get("error")
        places = [p for p in (inner, body) if isinstance(p, dict)]
        codes = {
            str(place[key]).lower()
            for place in places
            for key in ("code", "type", "status", "__type")
            if isinstance(place.get(key), (str, int))
        }
        words = [inner] if isinstance(inner, str) else []
        for place in places:
            for key in ("message", "detail", "error_description", "msg"):
                value = place.get(key)
                if value and not (isinstance(value, dict) and place is body):
                    words.append(value if isinstance(value, str) else str(value))
        # A relay keeps the words of the server behind it here (OpenRouter).
        metadata = inner.get("metadata") if isinstance(inner, dict) else None
        raw = metadata.get("raw") if isinstance(metadata, dict) else None
        if isinstance(raw, str):
            words.append(raw)
        return _Error(frozenset(codes), " ".join(words), _retry_delay(inner))

    def says(self, codes: frozenset[str], words: re.Pattern[str]) -> bool:
        return bool(self.codes & codes or words.search(self.message))


def status_inside(body: Mapping[str, JsonValue]) -> int:
    """Return the status that an error inside a reply of 200 gives itself, else 500."""
    inner = body.get("error")
    for place in (inner, body):
        code = place.get("code") if isinstance(place, dict) else None
        if isinstance(code, str) and code.isdigit():
            code = int(code)
        if isinstance(code, int) and 400 <= code < 600:
            return code
    return 500


def retry_after(headers: Mapping[str, str], *, now: float) -> float | None:
    """Return the seconds to wait that the headers ask for, None when they ask for none.

    Both forms of ``Retry-After`` are read, and the ``retry-after-ms`` that some servers add.
    """
    value = headers.get("retry-after-ms", "").strip()
    try:
        if value:
            return max(0.0, float(value) / 1000)
    except ValueError:
        pass
    value = headers.get("retry-after", "").strip()
    if not value:
        return None
    try:
        seconds = float(value)
        return seconds if 0 <= seconds < float("inf") else None
    except ValueError:
        pass
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - now)
    except ValueError:
        return None


def _wait(headers: Mapping[str, str], error: _Error, now: float) -> float | None:
    asked = [w for w in (retry_after(headers, now=now), error.retry_delay) if w is not None]
    return max(asked, default=None)


def _retry_delay(error: JsonValue) -> float | None:
    """Read the ``retryDelay`` ("34s") among the details of a Google error."""
    details = error.get("details") if isinstance(error, dict) else None
    for detail in details if isinstance(details, list) else []:
        delay = detail.get("retryDelay") if isinstance(detail, dict) else None
        if isinstance(delay, str) and (found := re.fullmatch(r"([0-9.]+)s", delay)):
            return float(found.group(1))
    return None


def _quote(text: str) -> str:
    flat = " ".join(_without_markup(text).split())
    return flat if len(flat) <= QUOTE_CHARS else flat[: QUOTE_CHARS - 1] + "…"


def _without_markup(text: str) -> str:
    if "<html" not in text.lower() and "<!doctype" not in text.lower():
        return text
    text = re.sub(r"(?is)<(script|style|head)\b.*?</\1>", " ", text)
    return re.sub(r"<[^>]{0,500}>", " ", text)


def _without_keys(text: str) -> str:
    """Mask what looks like a key or part of one, since servers quote the key they refuse."""
    return re.sub(r"\b(?:sk|pk|gsk|xai|key|AIza)[-_][\w*.-]{4,}|\S*\*{3,}\S*", "[key]", text)
