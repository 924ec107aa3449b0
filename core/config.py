"""Settings: read once at start from the environment, `.env` and `config.toml`, then passed in.

Order: environment, `.env` of the current folder, `.env` of the home, `config.toml` of the home.
An empty variable counts as unset. Nothing here creates files.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_args
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, available_timezones

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from core.errors import SettingsInvalid

Lang = Literal["it", "en"]
LANGS: tuple[str, ...] = get_args(Lang)
TierName = Literal["fast", "middle", "wise", "frontier"]
Engine = Literal["auto", "simple", "metis", "frontier"]
Mode = Literal["local", "online", "hybrid"]
EmbedderName = Literal["auto", "hashing", "e5", "endpoint", "off"]


_ADDRESS = "an address that starts with http:// or https://"
_PATH = "a path; ~name stands for the home of a user of this machine"
_KEY = "a key of ASCII characters without spaces"
_COUNT = "a whole number, 0 for no limit"
_AMOUNT = "an amount of money, 0 for no limit"
_WEBHOOK_URL = "the public address of the bot, with https://"
_SHARED = "16 to 256 letters, digits, - and _, known to nobody else"
_PORT = "a port from 1 to 65535"
_HOSTS = "names with or without a port, as a browser's address line shows them"
_FOLDER = "the name of a folder inside the first open one, without dots in front"
_SERVICE = f"{_ADDRESS}, or off"

PUBLIC_PHOTON = "https://photon.komoot.io"
PUBLIC_WEATHER = "https://api.open-meteo.com"
PUBLIC_WEATHER_PLACES = "https://geocoding-api.open-meteo.com"
PUBLIC_SERVICES = frozenset({PUBLIC_PHOTON, PUBLIC_WEATHER, PUBLIC_WEATHER_PLACES})


def _address(value: str) -> str:
    parts = urlsplit(value)
    try:
        well = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port beyond the last one
        well = False
    if not well:
        raise ValueError(_ADDRESS)
    return value.rstrip("/")


def _service(value: str) -> str:
    if value.strip().casefold() in {"", "off"}:
        return ""
    try:
        return _address(value)
    except ValueError as exc:
        raise ValueError(_SERVICE) from exc


def _header(value: SecretStr) -> SecretStr:
    # It travels in a header of HTTP, which holds nothing else.
    key = value.get_secret_value().strip()
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ValueError(_KEY)
    return SecretStr(key)


def _webhook_url(value: str) -> str:
    parts = urlsplit(_address(value))
    # Telegram itself delivers only to https; a Bot API server on this machine also without.
    if parts.scheme != "https" and parts.hostname not in {"127.0.0.1", "::1", "localhost"}:
        raise ValueError(_WEBHOOK_URL)
    return value


def _shared(value: SecretStr) -> SecretStr:
    secret = value.get_secret_value().strip()
    if not re.fullmatch(r"[A-Za-z0-9_-]{16,256}", secret):
        raise ValueError(_SHARED)
    return SecretStr(secret)


def _folder_name(value: str) -> str:
    parts = value.strip().strip("/").split("/")
    if any(not part.strip() or part.startswith(".") or not part.isprintable() for part in parts):
        raise ValueError(_FOLDER)
    return "/".join(parts)


def _full_path(value: Path) -> Path:
    try:
        return value.expanduser().absolute()
    except RuntimeError as exc:
        raise ValueError(_PATH) from exc


def _host_name(value: str) -> str:
    if not re.fullmatch(
        r"(?:[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?", value
    ):
        raise ValueError(_HOSTS)
    return value


Address = Annotated[str, AfterValidator(_address)]
Service = Annotated[str, AfterValidator(_service)]
Key = Annotated[SecretStr, AfterValidator(_header)]
WebhookUrl = Annotated[str, AfterValidator(_webhook_url)]
WebhookSecret = Annotated[SecretStr, AfterValidator(_shared)]
FolderName = Annotated[str, AfterValidator(lambda value: _folder_name(value) if value else "")]
HostName = Annotated[str, AfterValidator(_host_name)]
FullPath = Annotated[Path, AfterValidator(_full_path)]


class TierSettings(BaseModel):
    """One `[tiers.NAME]` table of config.toml. Prices are per million tokens."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    provider: Literal["openai", "anthropic"] = "openai"
    base_url: Address
    model: str = ""
    api_key: Key | None = None
    think: bool = False
    temperature: float = Field(0.0, ge=0, le=2)
    max_tokens: int = Field(1024, ge=1, le=200_000)
    first_token_timeout_s: float = Field(60, gt=0, le=3600)
    total_timeout_s: float = Field(180, gt=0, le=3600)
    retries: int = Field(2, ge=0, le=10)
    input_price: float = Field(0.0, ge=0)
    output_price: float = Field(0.0, ge=0)
    local: bool = False
    fallback: tuple[TierName, ...] = ()


class Settings(BaseSettings):
    """Everything a person can set, with defaults that work."""

    model_config = SettingsConfigDict(
        env_prefix="",
        env_ignore_empty=True,
        env_file_encoding="utf-8-sig",
        extra="ignore",
        frozen=True,
        hide_input_in_errors=True,
    )

    metnos_home: FullPath = Field(
        default_factory=lambda: (
            Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share") / "metnos"
        )
    )
    metnos_lang: Lang = "it"
    metnos_tz: str = Field(default_factory=lambda: system_timezone())
    metnos_llm_base_url: Address | None = None
    metnos_llm_model: str = ""
    metnos_llm_api_key: Key | None = None
    metnos_llm_provider: Literal["openai", "anthropic"] = "openai"
    metnos_engine: Engine = "auto"
    metnos_most_tools: int = Field(0, ge=0, le=60)
    metnos_memory: bool = True
    metnos_autopath: bool = True
    metnos_embed_base_url: Address | None = None
    metnos_embedder: EmbedderName = "auto"
    metnos_embed_model: str = "bge-m3"
    metnos_embed_api_key: Key | None = None
    metnos_mode: Mode = "local"
    metnos_files_roots: Annotated[tuple[FullPath, ...] | None, NoDecode] = None
    metnos_private_hosts: Annotated[tuple[str, ...], NoDecode] = ()
    metnos_photon_url: Service = PUBLIC_PHOTON
    metnos_weather_url: Service = PUBLIC_WEATHER
    metnos_search_url: Service = ""
    metnos_guest_mode: bool = False
    metnos_location_minutes: int = Field(15, ge=0, le=1440)
    metnos_guest_turns_per_hour: int = Field(30, ge=0)
    metnos_guest_tokens_per_day: int = Field(200_000, ge=0)
    metnos_guest_money_per_day: float = Field(0.0, ge=0)
    metnos_tokens_per_day: int = Field(0, ge=0)
    metnos_money_per_day: float = Field(0.0, ge=0)
    metnos_inbox_folder: FolderName = ""
    metnos_guest_files_mb: int = Field(500, ge=0, le=1_000_000)
    metnos_transcribe_url: Address | None = None
    metnos_transcribe_model: str = "whisper-1"
    metnos_transcribe_api_key: Key | None = None
    metnos_judge_threshold: float = Field(0.30, ge=0, le=1)
    metnos_unsafe_no_cage: bool = False
    metnos_log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    metnos_log_file: FullPath | None = None
    telegram_bot_token: SecretStr | None = None
    metnos_telegram_stream: bool = True
    telegram_base_url: Address = "https://api.telegram.org/bot"
    telegram_base_file_url: Address = "https://api.telegram.org/file/bot"
    metnos_webhook_url: WebhookUrl | None = None
    metnos_webhook_secret: WebhookSecret | None = None
    metnos_webhook_port: int = Field(8766, ge=1, le=65535)
    metnos_console: bool = True
    metnos_console_port: int = Field(8765, ge=1, le=65535)
    metnos_console_hosts: Annotated[tuple[HostName, ...], NoDecode] = ()
    tiers: dict[TierName, TierSettings] = Field(default_factory=dict)

    @field_validator("metnos_tz")
    @classmethod
    def _zone(cls, value: str) -> str:
        if value not in available_timezones():
            raise ValueError("a time zone name such as Europe/Rome")
        return value

    @field_validator("metnos_embedder")
    @classmethod
    def _has_endpoint(cls, value: str, info: ValidationInfo) -> str:
        if value == "endpoint" and info.data.get("metnos_embed_base_url") is None:
            raise ValueError("an address")
        return value

    @field_validator("metnos_files_roots", mode="before")
    @classmethod
    def _roots(cls, value: Any) -> Any:
        if isinstance(value, str):
            value = [part for part in value.split(os.pathsep) if part.strip()]
        return value

    @field_validator("metnos_private_hosts", "metnos_console_hosts", mode="before")
    @classmethod
    def _hosts(cls, value: Any) -> Any:
        if isinstance(value, str):
            value = value.replace(",", " ").split()
        return tuple(host.lower() for host in value)

    @property
    def private_dir(self) -> Path:
        return self.metnos_home / "private"

    @property
    def executors_dir(self) -> Path:
        return self.metnos_home / "executors"

    @property
    def services(self) -> dict[str, str]:
        """Addresses of the services that executors ask, by name; "" for one that is off."""
        # The public weather service looks towns up at a host of its own.
        own = self.metnos_weather_url != PUBLIC_WEATHER
        return {
            "photon": self.metnos_photon_url,
            "search": self.metnos_search_url,
            "weather": self.metnos_weather_url,
            "weather_places": self.metnos_weather_url if own else PUBLIC_WEATHER_PLACES,
        }

    @property
    def secrets(self) -> tuple[str, ...]:
        """Values that must never stand in a log or a message."""
        keys = [
            self.telegram_bot_token,
            self.metnos_llm_api_key,
            self.metnos_webhook_secret,
            self.metnos_transcribe_api_key,
            self.metnos_embed_api_key,
        ]
        keys += [tier.api_key for tier in self.tiers.values()]
        return tuple(key.get_secret_value() for key in keys if key is not None)

    @property
    def zone(self) -> ZoneInfo:
        return ZoneInfo(self.metnos_tz)


_ALLOWED: Mapping[str, str] = {
    "metnos_lang": "it or en",
    "metnos_tz": "a time zone name such as Europe/Rome",
    "metnos_llm_provider": "openai or anthropic",
    "metnos_memory": "0 or 1",
    "metnos_autopath": "0 or 1",
    "metnos_embedder": "auto, hashing, e5, off, or endpoint beside METNOS_EMBED_BASE_URL",
    "metnos_embed_base_url": _ADDRESS,
    "metnos_embed_api_key": _KEY,
    "metnos_engine": "auto, simple, metis or frontier",
    "metnos_most_tools": "a whole number from 0 to 60",
    "metnos_mode": "local, online or hybrid",
    "metnos_unsafe_no_cage": "0 or 1",
    "metnos_guest_mode": "0 or 1",
    "metnos_log_level": "DEBUG, INFO, WARNING or ERROR",
    "metnos_location_minutes": "minutes, a whole number from 0 to 1440",
    "metnos_guest_turns_per_hour": _COUNT,
    "metnos_guest_tokens_per_day": _COUNT,
    "metnos_guest_money_per_day": _AMOUNT,
    "metnos_tokens_per_day": _COUNT,
    "metnos_money_per_day": _AMOUNT,
    "metnos_inbox_folder": _FOLDER,
    "metnos_guest_files_mb": "megabytes, a whole number from 0 to 1000000",
    "metnos_transcribe_url": _ADDRESS,
    "metnos_transcribe_api_key": _KEY,
    "metnos_judge_threshold": "a number from 0 to 1",
    "metnos_home": _PATH,
    "metnos_log_file": _PATH,
    "metnos_files_roots": _PATH,
    "metnos_llm_api_key": _KEY,
    "metnos_llm_base_url": _ADDRESS,
    "metnos_photon_url": _SERVICE,
    "metnos_weather_url": _SERVICE,
    "metnos_search_url": _SERVICE,
    "metnos_webhook_url": _WEBHOOK_URL,
    "metnos_webhook_secret": _SHARED,
    "metnos_webhook_port": _PORT,
    "metnos_console": "on or off",
    "metnos_console_port": _PORT,
    "metnos_console_hosts": _HOSTS,
    "telegram_base_url": _ADDRESS,
    "telegram_base_file_url": _ADDRESS,
}


def load_settings(**overrides: Any) -> Settings:
    """Read the settings. `overrides` win over everything (tests and command-line options).

    Raises `SettingsInvalid` with one sentence that names the setting and what is allowed.
    """
    here = Path.cwd() / ".env"
    _check_text(here)
    try:
        first = Settings(_env_file=here if here.is_file() else None, **overrides)  # type: ignore[call-arg]
        home = first.metnos_home
        _check_text(home / ".env")
        _check_text(home / "config.toml")
        files = tuple(path for path in (home / ".env", here) if path.is_file())
        merged = {**_config_file(home / "config.toml"), **_environment(files), **overrides}
        return Settings(_env_file=None, **{**merged, "metnos_home": home})  # type: ignore[call-arg]
    except ValidationError as exc:
        raise SettingsInvalid(_sentence(exc)) from exc
    except (OSError, RuntimeError) as exc:  # RuntimeError: nobody knows where the home is
        raise SettingsInvalid(f"The settings cannot be read: {exc}.") from exc


def _check_text(path: Path) -> None:
    try:
        if path.is_file():
            path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        raise SettingsInvalid(f"{path} cannot be read as text: {exc}.", file=str(path)) from exc


def _environment(files: tuple[Path, ...]) -> dict[str, Any]:
    """What `.env` files and the environment say, later ones first in rank."""
    from dotenv import dotenv_values

    values: dict[str, str | None] = {}
    for path in files:
        values.update({k: v for k, v in dotenv_values(path, encoding="utf-8-sig").items() if v})
    values.update({k: v for k, v in os.environ.items() if v})
    known = set(Settings.model_fields) - {"tiers"}
    return {k.lower(): v for k, v in values.items() if k.lower() in known}


def _config_file(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as exc:
        raise SettingsInvalid(f"{path.name} is not valid TOML: {exc}.") from exc
    unknown = sorted(set(data) - set(Settings.model_fields))
    if unknown:
        raise SettingsInvalid(f"{path.name} holds an unknown setting: {unknown[0]}.")
    return data


def _sentence(exc: ValidationError) -> str:
    error = exc.errors(include_input=False, include_url=False, include_context=False)[0]
    place = [str(part) for part in error["loc"]]
    name = place[0].upper() if place and place[0] != "tiers" else ".".join(place)
    allowed = _ALLOWED.get(place[0] if place else "", error["msg"].removeprefix("Value error, "))
    return f"{name} is not valid; allowed: {allowed}."


def system_timezone() -> str:
    """The zone of this machine by name, UTC when it has none that is known."""
    try:
        target = str(Path("/etc/localtime").resolve())
    except OSError:
        return "UTC"
    name = target.partition("/zoneinfo/")[2].removeprefix("posix/")
    return name if name in available_timezones() else "UTC"
