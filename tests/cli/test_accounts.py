"""`metnos accounts`: connecting a service from the command line, its secret never on it."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import Cli, Ran

SECRET = "canary-parola-91"


def add(cli: Cli, *words: str, secret: str = SECRET) -> Ran:
    return cli("accounts", "add", *words, "--secret-stdin", stdin=secret + "\n")


def test_add_list_and_remove(cli: Cli) -> None:
    assert "accounts add mail" in cli("accounts", "list").out

    added = add(cli, "mail", "Casa", "--set", "address=ada@casa.example")
    calendar = add(cli, "calendar", "--set", "url=https://dav.example/ada", "--set", "user=ada")
    listed = json.loads(cli("accounts", "list", "--json").out)

    assert added.status == calendar.status == 0
    assert "secrets.key" in added.out
    assert [(one["name"], one["kind"]) for one in listed] == [
        ("calendar", "calendar"),
        ("Casa", "mail"),
    ]
    assert listed[1]["values"]["imap_host"] == "imap.casa.example"
    assert "ada@casa.example" in cli("accounts", "list").out
    everything = added.out + added.err + cli("accounts", "list").out + json.dumps(listed)
    assert SECRET not in everything

    assert cli("accounts", "remove", "casa").status == 0
    assert cli("accounts", "remove", "casa").status == 1
    assert len(json.loads(cli("accounts", "list", "--json").out)) == 1


def test_same_name_replaces(cli: Cli) -> None:
    for host in ("one.example", "two.example"):
        words = ("--set", "address=ada@casa.example", "--set", f"imap_host={host}")
        assert add(cli, "mail", "Casa", *words).status == 0

    (kept,) = json.loads(cli("accounts", "list", "--json").out)
    assert kept["values"]["imap_host"] == "two.example"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("moon",), "places"),
        (("mail",), "Mail address"),
        (("mail", "--set", "address=ada"), "no mail address"),
        (("calendar", "--set", "url=ftp://x", "--set", "user=u"), "https://"),
        (("mail", "x" * 90, "--set", "address=a@b.example"), "60"),
    ],
)
def test_what_cannot_be_is_refused_in_words(cli: Cli, words: tuple[str, ...], said: str) -> None:
    refused = add(cli, *words)

    assert refused.status == 2
    assert said in refused.err
    assert json.loads(cli("accounts", "list", "--json").out) == []


def test_without_secret_nothing_is_saved(cli: Cli) -> None:
    refused = add(cli, "mail", "--set", "address=a@b.example", secret="")

    assert refused.status == 2
    assert json.loads(cli("accounts", "list", "--json").out) == []
