"""`metnos grants`: opening and closing what the settings leave shut."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from tests.cli.conftest import Cli


def test_grants_add_list_and_revoke(cli: Cli) -> None:
    folder = cli.folder / "photos"
    folder.mkdir()

    added = cli("grants", "add", "host", "NAS.example:8080", "--for", "7d", "--json")
    assert cli("grants", "add", "folder", str(folder), "--write").status == 0
    listed = cli("grants", "list")
    revoked = cli("grants", "revoke", "1")

    said = json.loads(added.out)
    left = datetime.fromisoformat(said["expires_at"]) - datetime.now(UTC)
    assert (said["kind"], said["target"]) == ("host", "nas.example:8080")
    assert timedelta(days=6, hours=23) < left <= timedelta(days=7)
    assert "nas.example:8080" in listed.out
    assert "photos" in listed.out
    assert revoked.out == "Taken back: nas.example:8080\n"
    assert [one["kind"] for one in json.loads(cli("grants", "list", "--json").out)] == ["write"]


def test_grants_shows_what_the_settings_open(cli: Cli) -> None:
    assert cli("grants", "list").out == "No further grants.\n"

    cli.env(METNOS_PRIVATE_HOSTS="nas.example")

    assert "METNOS_PRIVATE_HOSTS" in cli("grants", "list").out


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("add", "host", "http://nas.example"), 1),
        (("add", "host", "127.1"), 1),
        (("add", "host", "*"), 1),
        (("add", "folder", "/nowhere/at/all"), 1),
        (("add", "folder", "/proc"), 1),
        (("add", "folder", "/etc/ssh"), 1),
        (("add", "host", "nas.example", "--for", "soon"), 2),
        (("add", "host", "nas.example", "--for", "0d"), 2),
        (("add", "host", "nas.example", "--write"), 2),
        (("add", "mail", "nas.example"), 2),
        (("add", "host", "nas.example", "--actor", "nobody"), 1),
        (("revoke", "77"), 1),
        (("list", "--actor", "nobody"), 1),
    ],
)
def test_grants_what_cannot_be_opened_is_refused_in_a_sentence(
    cli: Cli, words: tuple[str, ...], status: int
) -> None:
    ran = cli("grants", *words)

    assert ran.status == status
    assert ran.out == ""
    assert ran.err.strip()
    assert "Traceback" not in ran.err
    assert json.loads(cli("grants", "list", "--json").out) == []


def test_grants_never_open_the_home_of_the_product(cli: Cli) -> None:
    cli("grants", "list")

    assert cli("grants", "add", "folder", str(cli.home / "private")).status == 1
    assert cli("grants", "add", "folder", str(cli.home)).status == 1
