"""`metnos doctor`: each fault by its cause and one command."""

from __future__ import annotations

import asyncio
import io
import json
import shutil
import subprocess
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from bot.cli.lines import alarming
from bot.telegram.intake import CONFLICT, LAST_POLL
from core.clock import SystemClock
from core.config import load_settings
from core.execution.cage.status import CageStatus
from core.store import credentials, kv
from core.store.lock import engine_lock
from core.store.stores import open_stores
from tests.cli.conftest import Cli
from tests.cli.test_setup import telegram  # noqa: F401
from tests.executors.json_server import Asked, Gone, json_server
from tests.support.harness import Harness
from tests.support.scripted_model import Rule, ScriptedModel

pytestmark = pytest.mark.usefixtures("prepared")

Script = Callable[[Sequence[Rule]], ScriptedModel]
CALLS_TOOLS = [Rule(user="Tokyo", calls=[("get_now", {"place": "Tokyo"})])]


def checks(cli: Cli, *options: str) -> dict[str, list[dict[str, Any]]]:
    """What the doctor says, by check; and that its status agrees."""
    ran = cli("doctor", "--json", *options)
    said = json.loads(ran.out)
    found: dict[str, list[dict[str, Any]]] = {}
    for entry in said["checks"]:
        assert (entry["state"] == "fault") <= (entry["mend"] is not None)
        found.setdefault(entry["check"], []).append(entry)
    assert ran.status == (0 if said["ok"] else 1)
    return found


def faults(found: dict[str, list[dict[str, Any]]]) -> list[str]:
    return [e["check"] for entries in found.values() for e in entries if e["state"] == "fault"]


def test_doctor_of_a_sound_home_finds_nothing(cli: Cli, script: Script) -> None:
    script(CALLS_TOOLS)
    cli("setup")

    ran = cli("doctor")

    assert ran.status == 0, ran.out
    assert "scripted called a tool in" in ran.out
    assert "All is well." in ran.out
    assert "the kernel closes each tool in" in ran.out


def test_doctor_before_setup_says_to_set_up(cli: Cli) -> None:
    shutil.rmtree(cli.home)

    found = checks(cli, "--offline")

    assert faults(found) == ["home"]
    assert found["home"][0]["mend"].endswith("metnos setup")
    assert not cli.home.exists(), "a check must not make what it looks for"


def test_doctor_names_a_tampered_executor_its_reason_and_the_mending(cli: Cli) -> None:
    cli("setup")
    (cli.home / "executors" / "get_now" / "main.py").write_text("x = 1\n", encoding="utf-8")

    found = checks(cli, "--offline")

    (entry,) = found["executors"]
    assert "get_now" in entry["message"]
    assert "main.py" in entry["message"]
    cli(*entry["mend"].split()[1:])
    assert faults(checks(cli, "--offline")) == []


def test_doctor_names_an_unsigned_executor_of_ones_own(cli: Cli) -> None:
    cli("setup")
    (cli.home / "executors" / "list_files").mkdir(mode=0o700)

    found = checks(cli, "--offline")

    assert found["executors"][0]["mend"].endswith("executors sign list_files")


def test_doctor_finds_a_damaged_database_and_its_command_mends_it(cli: Cli) -> None:
    cli("setup")
    path = cli.home / "private" / "metnos.db"
    for extra in ("-wal", "-shm"):
        path.with_name(path.name + extra).unlink(missing_ok=True)
    path.write_bytes(b"not a database" * 1000)

    found = checks(cli, "--offline")

    assert faults(found) == ["database"]
    mend = found["database"][0]["mend"]
    assert str(path) in mend
    assert mend.endswith("metnos setup")
    path.rename(path.with_name("metnos.db.damaged"))
    cli("setup")
    assert faults(checks(cli, "--offline")) == []


def test_doctor_finds_files_that_others_can_read(cli: Cli) -> None:
    cli("setup")
    (cli.folder / ".env").write_text("METNOS_ENGINE=simple\n", encoding="utf-8")
    (cli.folder / ".env").chmod(0o644)
    cli.home.chmod(0o755)

    found = checks(cli, "--offline")

    assert sorted(faults(found)) == ["home", "settings"]
    assert found["home"][0]["mend"] == f"chmod 700 {cli.home}"
    assert found["settings"][0]["mend"].startswith("chmod 600 ")


@pytest.mark.parametrize("name", ["turns", "policy", "files", "private", "executors"])
def test_doctor_finds_a_part_of_the_home_that_is_no_folder(cli: Cli, name: str) -> None:
    cli("setup")
    (cli.home / name).rename(cli.home / "aside")
    (cli.home / name).write_text("", encoding="utf-8")

    ran = cli("doctor", "--json", "--offline")

    home = [one for one in json.loads(ran.out)["checks"] if one["check"] == "home"]
    assert (ran.status, home[0]["state"]) == (1, "fault")
    path = cli.home / name
    assert home[0]["mend"] == f"mv {path} {path}.damaged && metnos setup"


def test_doctor_finds_a_folder_that_is_gone(cli: Cli) -> None:
    cli("setup")
    cli.env(METNOS_FILES_ROOTS=str(cli.folder / "gone"))

    found = checks(cli, "--offline")

    assert found["settings"][0]["mend"] == f"mkdir -p {cli.folder / 'gone'}"


def test_doctor_tells_a_wrong_setting_as_a_fault(cli: Cli) -> None:
    cli.env(METNOS_ENGINE="steam")

    found = checks(cli)

    assert "METNOS_ENGINE" in found["settings"][0]["message"]


def test_doctor_tells_a_nearly_full_disk(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    cli("setup")
    monkeypatch.setattr("bot.cli.checks.LEAST_FREE_BYTES", 10**18)

    assert faults(checks(cli, "--offline")) == ["disk"]


@pytest.mark.parametrize(("abi", "says"), [(0, "It takes Linux 5.13"), (4, "Landlock is there")])
def test_doctor_of_a_machine_without_a_cage_says_why(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, abi: int, says: str
) -> None:
    cli("setup")
    status = CageStatus(False, abi, False, ("Operation not permitted",))
    monkeypatch.setattr("core.execution.cage.status.cage_status", lambda: status)

    found = checks(cli, "--offline")

    assert faults(found) == ["isolation"]
    assert says in found["isolation"][0]["message"]
    assert "Operation not permitted" in found["isolation"][0]["message"]


@pytest.mark.parametrize("place", ["environment", ".env", "config.toml"])
def test_doctor_of_a_cage_switched_off_is_a_fault_whose_command_brings_it_back(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    cli("setup")
    (cli.folder / ".env").write_text("#METNOS_UNSAFE_NO_CAGE=0\n", encoding="utf-8")
    (cli.folder / ".env").chmod(0o600)
    if place == "environment":
        cli.env(METNOS_UNSAFE_NO_CAGE="1")
    elif place == ".env":
        (cli.home / ".env").write_text("METNOS_UNSAFE_NO_CAGE=1\n", encoding="utf-8")
        (cli.home / ".env").chmod(0o600)
    else:
        (cli.home / place).write_text("metnos_unsafe_no_cage = true\n", encoding="utf-8")
        (cli.home / place).chmod(0o600)

    found = checks(cli, "--offline")

    assert faults(found) == ["isolation"]
    assert "SWITCHED OFF" in found["isolation"][0]["message"]
    mend = found["isolation"][0]["mend"]
    if place == "environment":
        assert mend == "unset METNOS_UNSAFE_NO_CAGE"
        monkeypatch.delenv("METNOS_UNSAFE_NO_CAGE")
    else:
        subprocess.run(mend, shell=True, check=True)
    assert faults(checks(cli, "--offline")) == []


@pytest.mark.parametrize(("found", "says"), [("/usr/bin/bwrap", "present"), (None, "absent")])
def test_doctor_says_whether_bubblewrap_is_there_and_blames_nobody(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, found: str | None, says: str
) -> None:
    monkeypatch.setattr("core.execution.cage.bubble.find_bubblewrap", lambda: found)
    cli("setup")

    line = checks(cli, "--offline")["programs"][0]

    assert line["message"].startswith(f"bubblewrap: {says}, only for tools that start programs")
    assert line["state"] == "info"


def test_start_without_a_cage_says_so_every_time(cli: Cli, script: Script) -> None:
    script([Rule(text="Hello.")])
    cli.env(METNOS_UNSAFE_NO_CAGE="1", TELEGRAM_BOT_TOKEN="hello")

    for command in (("chat", "--once", "hello"), ("run",)):
        ran = cli(*command)
        assert "✗ No isolation: METNOS_UNSAFE_NO_CAGE is set" in ran.err
        assert "No isolation" not in ran.out


@pytest.mark.parametrize(
    ("tty", "variables", "red"),
    [(True, {}, True), (False, {}, False), (True, {"NO_COLOR": "1"}, False),
     (True, {"TERM": "dumb"}, False)],
)  # fmt: skip
def test_alarm_is_red_on_a_terminal_that_can(
    monkeypatch: pytest.MonkeyPatch, tty: bool, variables: dict[str, str], red: bool
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: tty)

    assert alarming("no", stream) == ("\033[31mno\033[0m" if red else "no")


@pytest.mark.parametrize(
    ("rules", "says"),
    [
        ([Rule(text="It is noon.")], "calls no tools"),
        ([Rule(status=401)], "refused"),
        ([Rule(status=404)], "refused"),
    ],
    ids=["prose only", "wrong key", "wrong name"],
)
def test_doctor_tells_what_is_wrong_with_the_model(
    cli: Cli, script: Script, rules: list[Rule], says: str
) -> None:
    cli("setup")
    script(rules)

    found = checks(cli)

    assert faults(found) == ["model"]
    assert says in found["model"][0]["message"]


def test_doctor_without_a_model_gives_the_command_that_brings_one(cli: Cli) -> None:
    cli("setup")
    cli.env(METNOS_LLM_BASE_URL="", METNOS_LLM_MODEL="")

    found = checks(cli)

    assert found["model"][0]["mend"].endswith("metnos model pull")


@pytest.mark.parametrize(
    ("token", "says"), [("hello", "is no token"), ("123456:" + "x" * 35, "does not know")]
)
def test_doctor_tells_a_bad_token_and_never_shows_it(
    cli: Cli,
    script: Script,
    telegram: Harness,  # noqa: F811
    token: str,
    says: str,
) -> None:
    script(CALLS_TOOLS)
    cli("setup")
    cli.env(TELEGRAM_BOT_TOKEN=token)

    ran = cli("doctor")

    assert ran.status == 1
    assert says in ran.out
    assert token not in ran.out


def test_doctor_knows_the_bot_its_webhook_and_that_nobody_is_paired(
    cli: Cli,
    script: Script,
    telegram: Harness,  # noqa: F811
) -> None:
    script(CALLS_TOOLS)
    cli("setup")
    cli.env(TELEGRAM_BOT_TOKEN=telegram.tg.token)
    telegram.tg.webhook = {"url": "https://other.example/hook", "secret": "", "max": 40}

    said = [entry["message"] for entry in checks(cli)["telegram"]]

    assert "@casa_bot" in said[0]
    assert any("other.example" in line for line in said)
    assert "does not know you yet" in said[-1]


@pytest.mark.parametrize(
    ("key", "age", "says"),
    [
        (LAST_POLL, timedelta(hours=2), "has not heard Telegram since"),
        (LAST_POLL, timedelta(), "last heard"),
        (CONFLICT, timedelta(), "Another program reads the messages of @casa_bot"),
    ],
    ids=["deaf", "well", "second-hand token"],
)
def test_doctor_reads_how_the_running_bot_fares(
    cli: Cli,
    script: Script,
    telegram: Harness,  # noqa: F811
    key: str,
    age: timedelta,
    says: str,
) -> None:
    script(CALLS_TOOLS)
    cli("setup")
    cli.env(TELEGRAM_BOT_TOKEN=telegram.tg.token)

    async def note() -> None:
        stores = await open_stores(load_settings(), SystemClock())
        async with stores.main.write() as tx:
            suffix = " @casa_bot" if key == CONFLICT else ""
            moment = datetime.now(UTC) - age
            await kv.put(tx, key, moment.isoformat() + suffix)
        await stores.close()

    asyncio.run(note())

    with engine_lock(cli.home, "run"):
        said = [entry["message"] for entry in checks(cli)["telegram"]]

    assert any(says in line for line in said), said


@pytest.mark.parametrize(
    ("check", "setting", "url", "says"),
    [
        ("places", "METNOS_PHOTON_URL", "", "photon.komoot.io"),
        ("places", "METNOS_PHOTON_URL", "http://localhost:2322/", "localhost:2322"),
        ("places", "METNOS_PHOTON_URL", "off", "METNOS_PHOTON_URL"),
        ("weather", "METNOS_WEATHER_URL", "", "api.open-meteo.com"),
        ("weather", "METNOS_WEATHER_URL", "off", "METNOS_WEATHER_URL"),
        ("search", "METNOS_SEARCH_URL", "", "METNOS_SEARCH_URL"),
        ("search", "METNOS_SEARCH_URL", "http://localhost:8888/x?q={query}", "localhost:8888"),
    ],
)
def test_doctor_says_who_is_asked_about_places_weather_and_the_web(
    cli: Cli, check: str, setting: str, url: str, says: str
) -> None:
    cli.env(**{setting: url})

    assert says in checks(cli, "--offline")[check][0]["message"]


@pytest.mark.parametrize("lang", ["it", "en"])
def test_doctor_asks_the_services_that_the_owner_chose_and_no_others(cli: Cli, lang: str) -> None:
    words = {"it": ("risponde", "nessuna risposta"), "en": ("answers", "no usable answer")}[lang]

    def answer(asked: Asked) -> Any:
        if asked.path == "/api":
            return {"type": "FeatureCollection", "features": []}
        return Gone(503)

    with json_server(answer) as own:
        cli.env(METNOS_LANG=lang, METNOS_PHOTON_URL=own.endpoint, METNOS_SEARCH_URL=own.endpoint)
        cli("setup")
        found = checks(cli)

    assert [one["state"] for one in found["places"]] == ["info", "good"]
    assert words[0] in found["places"][1]["message"]
    assert [one["state"] for one in found["search"]] == ["info", "fault"]
    assert words[1] in found["search"][1]["message"]
    assert "503" in found["search"][1]["message"]
    assert found["search"][1]["mend"] == f"curl -sS {own.endpoint}"
    # The public service is said, and left in peace.
    assert [one["state"] for one in found["weather"]] == ["info"]


def test_key_of_the_credentials_is_named_when_it_is_missing_open_or_another(cli: Cli) -> None:
    cli("setup")
    path = cli.home / "private" / "keys" / "secrets.key"
    assert checks(cli)["secrets"][0]["state"] == "good"

    async def entrust() -> None:
        stores = await open_stores(load_settings(), SystemClock())
        async with stores.main.write() as tx:
            now = SystemClock().now()
            await credentials.put(tx, stores.vault, "ada", "imap", "x", now)
        await stores.close()

    asyncio.run(entrust())
    path.chmod(0o644)
    (opened,) = checks(cli)["secrets"]
    path.unlink()
    (missing,) = checks(cli)["secrets"]
    cli("setup")
    (other,) = checks(cli)["secrets"]

    assert [one["state"] for one in (opened, missing, other)] == ["fault"] * 3
    assert opened["mend"].startswith("chmod 600")
    assert "setup" in missing["mend"]
    assert "imap" in other["message"]
