"""List prices: what a call costs by the published price of its model, or that this is unknown."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import ipaddress
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import JsonValue

from pytest_modelbench.gateway.usage import CallUsage
from pytest_modelbench.records import Candidate

_TABLE = "model_prices_and_context_window_backup.json"


@dataclass(frozen=True)
class Price:
    """USD a token by class. ``source`` says where the figures come from.

    ``tiers`` are prices for calls whose whole input is above a number of tokens.
    """

    input: float | None
    output: float | None
    cached: float | None = None
    cache_written: float | None = None
    reasoning: float | None = None
    source: str = ""
    tiers: tuple[tuple[int, Price], ...] = ()

    def cost(self, usage: CallUsage) -> float | None:
        """Return the list cost of one call in USD; None where tokens or a price are unknown.

        Cached and cache-written tokens are part of the input and pay their own rate instead of the
        input's, which they pay where the price names none for them. So with thinking and output.
        """
        if usage.input is None or usage.output is None:
            return None
        for above, price in sorted(self.tiers, key=lambda tier: tier[0], reverse=True):
            if usage.input > above:
                return price.cost(usage)
        if self.input is None or self.output is None:
            return None
        cached, written = usage.cached or 0, usage.cache_written or 0
        thought = usage.reasoning or 0 if self.reasoning is not None else 0
        return (
            max(0, usage.input - cached - written) * self.input
            + cached * (self.input if self.cached is None else self.cached)
            + written * (self.input if self.cache_written is None else self.cache_written)
            + max(0, usage.output - thought) * self.output
            + thought * (self.reasoning or 0.0)
        )


def price_of(candidate: Candidate) -> Price | None:
    """Return the price of a candidate's calls, None where it is unknown.

    Its own ``price`` comes first, then the model named by ``list_price_of``, then its model in
    LiteLLM's table. A model on a server of one's own has no list price of its own, whatever its
    name is.
    """
    if candidate.price:
        rates = {name: usd / 1e6 for name, usd in candidate.price.items()}
        return Price(
            input=rates.get("input"),
            output=rates.get("output"),
            cached=rates.get("cached"),
            cache_written=rates.get("cache_written"),
            source="declared",
        )
    if candidate.list_price_of:
        price = _listed(candidate.list_price_of)
        return None if price is None else _named(price, f"list price of {candidate.list_price_of}")
    if not candidate.model or own_server(candidate.api_base):
        return None
    return _listed(candidate.model)


def own_server(api_base: str) -> bool:
    """Tell whether an address is on this machine or in a private network."""
    host = urlsplit(api_base).hostname if api_base else None
    if not host:
        return False
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return "." not in host or host.endswith((".local", ".internal", ".lan", ".localhost"))
    return address.is_private or address.is_loopback or address.is_link_local


def provider_of(model: str) -> str:
    """Return the provider that a LiteLLM model name means, "" where it names none."""
    head, slash, _ = model.partition("/")
    if slash and head in known_providers():
        return head
    entry = price_table().get(model)
    provider = entry.get("litellm_provider") if entry else None
    return provider if isinstance(provider, str) else ""


@cache
def price_table() -> Mapping[str, Mapping[str, JsonValue]]:
    """Read the table that comes with LiteLLM, as a file: importing it takes seconds."""
    folder = _litellm_folder()
    if folder is None or not (folder / _TABLE).is_file():
        return {}
    table = json.loads((folder / _TABLE).read_text(encoding="utf-8"))
    return {name: entry for name, entry in table.items() if isinstance(entry, dict)}


@cache
def known_providers() -> frozenset[str]:
    """Return the prefixes that LiteLLM knows as providers."""
    folder = _litellm_folder()
    if folder is None:
        return frozenset()
    names = {path.name for path in (folder / "llms").iterdir() if path.is_dir()}
    listing = folder / "provider_endpoints_support_backup.json"
    if listing.is_file():
        names |= set(json.loads(listing.read_text(encoding="utf-8")).get("providers", {}))
    return frozenset(
        names | {"azure", "azure_text", "custom_openai"} - {"base_llm", "pass_through"}
    )


def table_version() -> str:
    """Name the table by the version of LiteLLM that it came with."""
    try:
        return f"litellm {importlib.metadata.version('litellm')}"
    except importlib.metadata.PackageNotFoundError:
        return "litellm"


def _litellm_folder() -> Path | None:
    found = importlib.util.find_spec("litellm")
    places = list(found.submodule_search_locations or ()) if found else []
    return Path(places[0]) if places else None


def _listed(model: str) -> Price | None:
    table = price_table()
    entry = table.get(model)
    if entry is None:
        head, _, rest = model.partition("/")
        entry = table.get(rest)
        if entry is None or entry.get("litellm_provider") != head:
            return None
    return _named(_price(entry, ""), table_version())


def _named(price: Price, source: str) -> Price:
    return Price(
        price.input,
        price.output,
        price.cached,
        price.cache_written,
        price.reasoning,
        source,
        price.tiers,
    )


def _price(entry: Mapping[str, JsonValue], suffix: str) -> Price:
    def rate(name: str) -> float | None:
        value = entry.get(name + suffix)
        if value is None and suffix:
            value = entry.get(name)
        return float(value) if isinstance(value, (int, float)) else None

    tiers: tuple[tuple[int, Price], ...] = ()
    if not suffix:
        sizes = {
            found.group(1)
            for key in entry
            if (found := re.fullmatch(r"input_cost_per_token_above_(\d+)k_tokens", key))
        }
        tiers = tuple((int(k) * 1000, _price(entry, f"_above_{k}k_tokens")) for k in sorted(sizes))
    return Price(
        input=rate("input_cost_per_token"),
        output=rate("output_cost_per_token"),
        cached=rate("cache_read_input_token_cost"),
        cache_written=rate("cache_creation_input_token_cost"),
        reasoning=rate("output_cost_per_reasoning_token"),
        tiers=tiers,
    )
