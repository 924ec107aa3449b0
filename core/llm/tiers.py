"""Which model does which work: tiers out of the settings, roles to tiers, models to engines.

A missing tier is stood in for by the next lower one; only `frontier`, which leaves the machine,
may be absent and then says so.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, Protocol
from urllib.parse import urlsplit

import httpx

from core.config import Engine, Settings, TierName, TierSettings
from core.errors import ModelMissing, ModelTimeout, ModelUnreachable
from core.llm.anthropic_wire import AnthropicDialect
from core.llm.client import ChatModel, ChatReply, ChatRequest
from core.llm.openai_wire import OpenAiDialect
from core.llm.wire import HttpModel, is_this_machine

if TYPE_CHECKING:
    from core.llm.local_server import LocalServer

log = logging.getLogger(__name__)

Role = Literal["plan", "plan_online", "judge", "filler", "read", "prose", "translate"]

ROLES: Mapping[Role, TierName] = {
    "plan": "middle",
    "plan_online": "frontier",
    "judge": "middle",
    "filler": "fast",
    "read": "middle",
    "prose": "wise",
    "translate": "fast",
}

# Who stands in for whom, in order. Upwards only where nothing lower is there at all.
_STANDS_IN: Mapping[TierName, tuple[TierName, ...]] = {
    "fast": ("fast", "middle", "wise"),
    "middle": ("middle", "fast", "wise"),
    "wise": ("wise", "middle", "fast"),
    "frontier": ("frontier",),
}

# Where a provider is found when only its key is given.
_HOME_OF = {"openai": "https://api.openai.com/v1", "anthropic": "https://api.anthropic.com"}


class Endpoint(ChatModel, Protocol):
    """One server: over HTTP wherever it is, or the bundled one."""

    async def name(self) -> str: ...


@dataclass(frozen=True, slots=True)
class ModelTraits:
    """What is known of a model by its name: which engine suits it, and how many tools it is
    shown at most. `local` follows from where it runs, not from its name."""

    family: str
    engine: Literal["simple", "metis", "frontier"]
    k_max: int
    local: bool


class Tiers:
    """The models of this house. Each tier keeps one HTTP client, made when it is first used."""

    def __init__(
        self,
        tiers: Mapping[TierName, TierSettings],
        *,
        engine: Engine = "auto",
        served: Mapping[TierName, LocalServer] | None = None,
        most_tools: int = 0,
    ) -> None:
        """`served`: tiers whose model this process serves itself, instead of an address.
        `most_tools`: how many a model is shown, whichever it is; 0: by its traits."""
        self._settings = dict(tiers)
        self._served = dict(served or {})
        self._engine, self._most_tools = engine, most_tools
        self._clients: list[httpx.AsyncClient] = []
        self._wires: dict[TierName, HttpModel] = {}
        self._models: dict[TierName, TierModel] = {}

    @classmethod
    def from_settings(cls, settings: Settings, *, bundled: LocalServer | None = None) -> Tiers:
        """The tiers of a `Settings`. METNOS_LLM_* are `fast`, before the table in config.toml;
        `bundled` is `fast` when no everyday model is set (see `needs_bundled`); it is not closed
        with the others.
        """
        tiers = dict(settings.tiers)
        served: dict[TierName, LocalServer] = {}
        own = _from_environment(settings)
        if own is not None:
            tiers["fast"] = own
        elif bundled is not None and not _everyday(tiers):
            tiers["fast"], served["fast"] = bundled.settings, bundled
        most = settings.metnos_most_tools
        return cls(tiers, engine=settings.metnos_engine, served=served, most_tools=most)

    @property
    def configured(self) -> bool:
        """Whether there is a model for everyday work, which is all but `frontier`."""
        return _everyday(self._settings)

    @property
    def has_frontier(self) -> bool:
        """Whether a model outside this machine was set up for planning."""
        return "frontier" in self._settings

    def tier_of(self, role: Role) -> TierName:
        """The tier that really does this work, after the standing in.

        Raises `ModelMissing` whose detail names the setting that is missing.
        """
        wanted = ROLES[role]
        for name in _STANDS_IN[wanted]:
            if name in self._settings:
                return name
        if wanted == "frontier":
            raise ModelMissing(
                "no frontier model is set: add a [tiers.frontier] table to config.toml",
                tier="frontier",
            )
        raise ModelMissing(
            "no model is set: run `metnos model pull`, or set METNOS_LLM_BASE_URL", tier="fast"
        )

    def settings_of(self, role: Role) -> TierSettings:
        """The settings of the tier that does this work (prices, limits). Raises `ModelMissing`."""
        return self._settings[self.tier_of(role)]

    def for_role(self, role: Role) -> ChatModel:
        """The model for a role, with its fallbacks behind it. Raises `ModelMissing`."""
        name = self.tier_of(role)
        if name not in self._models:
            fallback = tuple(n for n in self._settings[name].fallback if n in self._settings)
            self._models[name] = TierModel(
                name, self._wire, tuple(n for n in fallback if n != name)
            )
        return self._models[name]

    async def traits_of(self, role: Role) -> ModelTraits:
        """The traits of the model that plays a role. Asks the server for the model's name when
        the settings leave it out. Raises `ModelMissing`."""
        name = self.tier_of(role)
        tier = self._settings[name]
        model = await self._wire(name).name()
        local = tier.local or is_this_machine(urlsplit(tier.base_url).hostname or "")
        found = traits(model, local=local, engine=self._engine)
        return replace(found, k_max=self._most_tools) if self._most_tools else found

    async def close(self) -> None:
        """Close every connection. Safe to call twice."""
        clients, self._clients = self._clients, []
        self._wires.clear()
        for client in clients:
            await client.aclose()

    def _wire(self, name: TierName) -> Endpoint:
        if name in self._served:
            return self._served[name]
        if name not in self._wires:
            tier = self._settings[name]
            # Proxies of the environment are for the outside: loopback is always reached directly.
            url = urlsplit(tier.base_url)
            outside = not is_this_machine(url.hostname or "")
            client = httpx.AsyncClient(
                trust_env=outside,
                # Reading the certificates takes longer than a whole turn; plain http has none.
                verify=outside or url.scheme == "https",
                headers={"accept-encoding": "identity", "user-agent": "metnos"},
            )
            self._clients.append(client)
            dialect = AnthropicDialect() if tier.provider == "anthropic" else OpenAiDialect()
            self._wires[name] = HttpModel(tier, dialect, client)
        return self._wires[name]


def needs_bundled(settings: Settings) -> bool:
    """Whether these settings name no everyday model, so that the bundled one is wanted."""
    return not Tiers.from_settings(settings).configured


class TierModel:
    """A tier as a `ChatModel`: its own endpoint, then its fallbacks when that cannot be reached
    or stays silent. A refusal or an invalid reply is not made better by asking elsewhere."""

    def __init__(
        self, name: TierName, wire: Callable[[TierName], Endpoint], fallback: tuple[TierName, ...]
    ) -> None:
        self.name = name
        self._wire = wire
        self._order: tuple[TierName, ...] = (name, *fallback)

    def __repr__(self) -> str:
        return f"<TierModel {'→'.join(self._order)}>"

    async def complete(self, request: ChatRequest) -> ChatReply:
        *others, last = self._order
        for name in others:
            try:
                return await self._wire(name).complete(request)
            except (ModelUnreachable, ModelTimeout) as exc:
                log.warning("model tier failed", extra={"tier": name, "why": exc.detail})
        return await self._wire(last).complete(request)


def _from_environment(settings: Settings) -> TierSettings | None:
    """METNOS_LLM_* as a tier, over what config.toml says of `fast`. A key in config.toml belongs
    to the address beside it and is never sent to another."""
    base_url, key = settings.metnos_llm_base_url, settings.metnos_llm_api_key
    if base_url is None and key is not None and "fast" not in settings.tiers:
        base_url = _HOME_OF[settings.metnos_llm_provider]
    written = settings.tiers.get("fast")
    if base_url is None:
        if written is None:
            return None
        own = {"model": settings.metnos_llm_model, "api_key": key}
        return written.model_copy(update={k: v for k, v in own.items() if v})
    update = {
        "provider": settings.metnos_llm_provider,
        "base_url": base_url,
        "model": settings.metnos_llm_model,
        "api_key": key,
    }
    return (written or TierSettings.model_validate({"base_url": base_url})).model_copy(
        update=update
    )


def _everyday(tiers: Mapping[TierName, TierSettings]) -> bool:
    return any(name != "frontier" for name in tiers)


# -- models by family ---------------------------------------------------------------------------

_K_MAX_LOCAL, _K_MAX_HOSTED = 12, 40
_SMALL_BILLIONS = 4.0
_SIZE = re.compile(r"(?<![\w.])(?:(\d+)x)?(\d+(?:\.\d+)?)(b|m)(?![a-z])")

# First match wins. Size None: what the name says, if it says any.
_FAMILIES: tuple[tuple[str, str, float | None], ...] = (
    (r"gpt-oss", "gpt-oss", None),
    (r"gpt-[3-9]|chatgpt|(?<![\w.])o[1-9](?![\w.])", "openai", 1000),
    (r"claude", "claude", 1000),
    (r"gemini", "gemini", 1000),
    (r"grok", "grok", 1000),
    (r"mistral-(large|medium)|magistral-medium", "mistral", 1000),
    (r"deepseek-r1-distill", "deepseek-distill", None),
    (r"deepseek", "deepseek", None),
    (r"kimi", "kimi", 1000),
    (r"glm-?[4-9]", "glm", None),
    (r"qwen2\.5-coder", "qwen2.5-coder", None),
    (r"qw[eq]n?", "qwen", None),
    (r"smollm", "smollm", None),
    (r"tinyllama", "tinyllama", 1.1),
    (r"llama", "llama", None),
    (r"gemma", "gemma", None),
    (r"phi-?[34][\w.]*-mini", "phi", 3.8),
    (r"phi", "phi", None),
    (r"granite", "granite", None),
    (r"mistral|mixtral|ministral|devstral|codestral|magistral", "mistral", None),
)


def traits(model: str, *, local: bool, engine: Engine = "auto") -> ModelTraits:
    """What to make of a model by its name. Never fails: an unknown name is `unknown`/`simple`.

    Small models (at most 4 billion parameters by their name) plan whole under a schema, `metis`;
    the others call tools step by step, `simple`. `engine` other than auto wins.
    """
    name = model.lower().rpartition("/")[2]
    family, billions = "unknown", _billions(name)
    for pattern, found, size in _FAMILIES:
        if re.search(pattern, name):
            family, billions = found, size if size is not None else billions
            break
    small = billions is not None and billions <= _SMALL_BILLIONS
    chosen: Literal["simple", "metis", "frontier"] = "metis" if small else "simple"
    return ModelTraits(
        family=family,
        engine=chosen if engine == "auto" else engine,
        k_max=_K_MAX_LOCAL if local else _K_MAX_HOSTED,
        local=local,
    )


def _billions(name: str) -> float | None:
    match = _SIZE.search(name.replace("_", "-").replace(":", "-"))
    if not match:
        return None
    experts, number, unit = match.groups()
    return float(number) * int(experts or 1) / (1000 if unit == "m" else 1)
