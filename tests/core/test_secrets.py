"""Secrets that a turn asks for: a handle to everybody, the value only to the child it is for."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bot.app import House
from core.catalog.manifest import parse_manifest
from core.errors import ErrorCode, ManifestInvalid
from core.messages import FinalKind, Role, TurnClosed, TurnEvent, TurnSuspended
from core.redaction import MASK, mask_values
from core.store import actors, credentials
from tests.core.test_questions import asked
from tests.core.test_questions import said as said_by_id
from tests.support.executors import manifest_toml, prepare_home, signed_executor
from tests.support.house import LOCAL, house_settings, open_scripted
from tests.support.scripted_model import Rule, ScriptedModel

USER, PASSWORD = "canary-ada-71", "canary-päss-%/+42"
FIELDS = [
    {"var": "user", "prompt": "Che nome?", "kind": "secret"},
    {"var": "box", "prompt": "Quale casella?", "kind": "text"},
    {"var": "password", "prompt": "Che parola d'ordine?", "kind": "secret"},
]
ARGS = "\n".join(
    f"""[args.properties.{name}]
type = "string"
description = {{ it = "{name}", en = "{name}" }}
x-metnos-type = "{kind}"
"""
    for name, kind in [("user", "secret"), ("password", "secret"), ("box", "free")]
)
# Tells by digests what it got, and is as careless with it as an executor can be.
CODE = """
import base64, hashlib, sys, os


def run(call):
    args = call.args
    secret = args.get("password", "")
    sys.stderr.write("logging in with " + secret)
    if args.get("box") == "broken":
        raise RuntimeError("no login for " + secret)
    return {
        "ok": True,
        "content": {
            "digests": [
                hashlib.sha256(args.get(name, "").encode()).hexdigest()
                for name in ("user", "password")
            ],
            "echo": "you said " + secret,
            "encoded": base64.b64encode(secret.encode()).decode(),
            "environ": dict(os.environ),
            "argv": sys.argv,
        },
    }
"""
WELL = [("get_inputs", {"fields": FIELDS})]
USE = [
    (
        "read_messages",
        {"user": "{{step1.user}}", "password": "{{step1.password}}", "box": "{{step1.box}}"},
    )
]
RULES = [
    Rule(user="posta", after=0, calls=WELL),
    Rule(user="posta", after=1, calls=USE),
    Rule(user="posta", after=2, text="Letta."),
    Rule(text="Non so."),
]


@asynccontextmanager
async def mail(
    tmp_path: Path, rules: list[Rule] = RULES
) -> AsyncIterator[tuple[House, ScriptedModel]]:
    """A house with one executor that takes secrets."""
    settings = house_settings(tmp_path)
    if not settings.metnos_home.exists():
        prepare_home(settings.metnos_home)
        signed_executor(settings, manifest_toml("read_messages", args=ARGS), CODE)
    async with open_scripted(tmp_path, rules) as (house, model):
        yield house, model


async def said(house: House, text: str, **fields: Any) -> list[TurnEvent]:
    """Under an id that does not hold the text, as any channel's."""
    return await said_by_id(house, text, id=f"test:{house.clock.new_id()}", **fields)


async def fill(house: House, box: str = "posta in arrivo") -> TurnClosed:
    await said(house, USER)
    await said(house, box)
    end = (await said(house, PASSWORD))[-1]
    assert isinstance(end, TurnClosed)
    return end


def assert_nowhere(tmp_path: Path, model: ScriptedModel) -> None:
    """Neither canary in any file of the home, nor in anything that the model was asked."""
    for path in (tmp_path / "home").rglob("*"):
        data = path.read_bytes() if path.is_file() else b""
        assert USER.encode() not in data, path
        assert PASSWORD.encode() not in data, path
    prompts = json.dumps([ask.body for ask in model.asked], ensure_ascii=False)
    assert USER not in prompts
    assert PASSWORD not in prompts


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


async def test_child_gets_both_secrets_and_nobody_else_does(tmp_path: Path) -> None:
    async with mail(tmp_path) as (house, model):
        first = await asked(house, "leggi la posta")
        assert first.reply.secret
        assert first.reply.plain.startswith("Che nome?")
        end = await fill(house)

        assert end.final_kind is FinalKind.ANSWER
        seen = json.loads(model.asked[2].results[-1])["content"]
        assert seen["digests"] == [digest(USER), digest(PASSWORD)]
        assert seen["echo"] == f"you said {MASK}"
        assert MASK in seen["encoded"]
        assert not any(PASSWORD in str(value) for value in seen["environ"].values())
        values = json.loads(model.asked[1].results[-1])["content"]
        assert credentials.is_handle(values["user"])
        assert values["user"] != values["password"]
        assert values["box"] == "posta in arrivo"
        async with house.stores.main.read() as tx:
            left = await tx.fetch_one("SELECT count(*) AS n FROM secret_answers")
        assert left is not None
        assert left["n"] == 0
        assert_nowhere(tmp_path, model)
    assert_nowhere(tmp_path, model)


async def test_error_of_the_child_does_not_tell_the_secret(tmp_path: Path) -> None:
    async with mail(tmp_path) as (house, model):
        await asked(house, "leggi la posta")
        end = await fill(house, "broken")

        told = json.loads(model.asked[2].results[-1])
        assert told["error"]["code"] == "executor_crashed"
        assert "RuntimeError" in told["error"]["detail"]
        assert PASSWORD not in end.reply.plain
        assert_nowhere(tmp_path, model)


async def test_secrets_survive_a_restart_between_the_fields(tmp_path: Path) -> None:
    async with mail(tmp_path) as (house, _):
        await asked(house, "leggi la posta")
        await said(house, USER)
    async with mail(tmp_path, RULES) as (house, model):
        await said(house, "arrivo")
        end = (await said(house, PASSWORD))[-1]

        assert isinstance(end, TurnClosed)
        assert end.final_kind is FinalKind.ANSWER
        seen = json.loads(model.asked[-1].results[-1])["content"]
        assert seen["digests"] == [digest(USER), digest(PASSWORD)]
        assert_nowhere(tmp_path, model)


@pytest.mark.parametrize("way", ["cancel", "expire"])
async def test_answers_are_gone_when_their_turn_ends_otherwise(tmp_path: Path, way: str) -> None:
    async with mail(tmp_path) as (house, model):
        await asked(house, "leggi la posta")
        await said(house, USER)
        await said(house, "arrivo")
        if way == "cancel":
            await said(house, "annulla")
        else:
            async with house.stores.main.write() as tx:
                past = (house.clock.now() - timedelta(seconds=1)).timestamp()
                await tx.execute("UPDATE suspensions SET expires_at = ?", (past,))
            await house.turns.expire()

        async with house.stores.main.read() as tx:
            left = await tx.fetch_one("SELECT count(*) AS n FROM secret_answers")
        assert left is not None
        assert left["n"] == 0
        assert_nowhere(tmp_path, model)


async def test_secret_typed_after_its_question_ran_out_is_nobodys_request(tmp_path: Path) -> None:
    async with mail(tmp_path) as (house, model):
        question = await asked(house, "leggi la posta")
        async with house.stores.main.write() as tx:
            past = (house.clock.now() - timedelta(seconds=1)).timestamp()
            await tx.execute("UPDATE suspensions SET expires_at = ?", (past,))
        await house.turns.expire()
        data = {"reply_to": question.turn_id, "secret": True}

        late = (await said(house, USER, data=data))[-1]

        assert isinstance(late, TurnClosed)
        assert late.error is not None
        assert late.error.code is ErrorCode.QUESTION_EXPIRED
        assert len(model.asked) == 1
        assert_nowhere(tmp_path, model)


async def test_passphrase_and_words_of_a_request_are_told_apart_only_without_a_reply(
    tmp_path: Path,
) -> None:
    async with mail(tmp_path) as (house, _):
        question = await asked(house, "leggi la posta")
        data = {"reply_to": question.turn_id, "secret": True}

        second = (await said(house, "che ore sono?", data=data))[-1]

        assert isinstance(second, TurnSuspended)
        assert second.reply.plain.startswith("Quale casella?")


async def test_secret_that_is_too_long_is_asked_again(tmp_path: Path) -> None:
    async with mail(tmp_path) as (house, model):
        question = await asked(house, "leggi la posta")
        data = {"reply_to": question.turn_id, "secret": True}

        again = (await said(house, PASSWORD * 600, data=data))[-1]

        assert isinstance(again, TurnSuspended)
        assert again.reply.secret
        assert_nowhere(tmp_path, model)


@pytest.mark.parametrize(
    "value",
    ["hunter2", "secret:" + "0" * 32, "secret:x", "{{step1.box}}", "x{{step1.password}}"],
    ids=["in clear", "unknown", "no handle", "other field", "inside a text"],
)
async def test_anything_but_a_handle_of_this_turn_is_refused_and_not_kept(
    tmp_path: Path, value: str
) -> None:
    rules = [
        RULES[0],
        Rule(user="posta", after=1, calls=[("read_messages", {"password": value})]),
        Rule(user="posta", text="Niente."),
    ]
    async with mail(tmp_path, rules) as (house, model):
        await asked(house, "leggi la posta")
        await fill(house)

        told = json.loads(model.asked[2].results[-1])
        assert told["error"]["code"] == "invalid_args"
        assert "get_inputs" in told["error"]["detail"]
    for path in (tmp_path / "home").rglob("*"):
        assert not path.is_file() or b"hunter2" not in path.read_bytes(), path


async def test_handle_of_another_person_or_turn_does_not_exist(tmp_path: Path) -> None:
    handle = "secret:" + "a" * 32
    rules = [
        Rule(user="posta", after=0, calls=[("read_messages", {"password": handle})]),
        Rule(user="posta", after=1, text="Niente."),
    ]
    async with mail(tmp_path, rules) as (house, model):
        async with house.stores.main.write() as tx:
            guest = await actors.add(tx, Role.GUEST, "Anna", house.clock)
            await actors.link(tx, LOCAL.channel, "7", guest.id)
            answer = credentials.seal_answer(
                house.stores.vault,
                answer_id="a" * 32,
                actor_id=guest.id,
                turn_id="t",
                text=PASSWORD,
            )
            await credentials.keep_answer(tx, answer, house.clock.now())
        for sender in ("local", "7"):
            await said(house, "leggi la posta", sender_id=sender)
            assert json.loads(model.asked[-1].results[-1])["error"]["code"] == "invalid_args"
        assert_nowhere(tmp_path, model)


async def test_handle_is_not_shown_to_the_person(tmp_path: Path) -> None:
    rules = [RULES[0], Rule(user="posta", after=1, text="Hai scritto {{step1.user}}.")]
    async with mail(tmp_path, rules) as (house, _):
        await asked(house, "leggi la posta")
        end = await fill(house)

        assert end.reply.plain.startswith(f"Hai scritto {MASK}.")


def test_masks_leave_the_rest_of_a_value_alone() -> None:
    value = {"a": ["xx hunter2 yy", 3, None, True], "hunter2": {"pin": "123", "n": "1234"}}

    assert mask_values(value, ["hunter2", "123"]) == {
        "a": [f"xx {MASK} yy", 3, None, True],
        MASK: {"pin": MASK, "n": "1234"},
    }


@pytest.mark.parametrize(
    "change", [('"string"', '"array"'), ('"secret"', '"secret"\nx-metnos-sink = "url"')]
)
def test_manifest_whose_secret_is_no_plain_text_is_refused(change: tuple[str, str]) -> None:
    text = manifest_toml("read_messages", args=ARGS.replace(*change, 1))
    files = 'files]\n"main.py" = "' + "0" * 64 + '"'

    with pytest.raises(ManifestInvalid, match="a secret is a string"):
        parse_manifest(text.replace("files]", files).encode(), folder="read_messages")


async def test_secret_is_not_handed_to_a_preview(tmp_path: Path) -> None:
    code = (
        CODE + "\n\ndef preview(call):\n"
        "    return {'targets': [call.args['password']], 'count': 1, 'before': None}\n"
    )
    rules = [
        Rule(user="busta", after=0, calls=WELL),
        Rule(
            user="busta",
            after=1,
            calls=[("set_messages", {"password": "{{step1.password}}", "box": "x"})],
        ),
        Rule(user="busta", text="Fatto."),
    ]
    settings = house_settings(tmp_path)
    manifest = manifest_toml("set_messages", effect="idempotent", args=ARGS)
    signed_executor(settings, manifest, code)
    async with open_scripted(tmp_path, rules) as (house, model):
        await asked(house, "prova con la busta")
        await said(house, USER)
        await said(house, "arrivo")
        last: Any = (await said(house, PASSWORD))[-1]

        assert isinstance(last, (TurnClosed, TurnSuspended))
        assert "secret:" not in last.reply.plain
        assert PASSWORD not in last.reply.plain
        assert_nowhere(tmp_path, model)


@pytest.mark.parametrize(
    "typed",
    [PASSWORD * 600, f"-----BEGIN KEY-----\n{PASSWORD * 5}\n-----END KEY-----"],
    ids=["one run of signs", "a key file"],
)
async def test_secret_of_any_length_is_told_to_no_model_though_it_is_no_reply(
    tmp_path: Path, typed: str
) -> None:
    async with mail(tmp_path) as (house, model):
        await asked(house, "leggi la posta")

        again = (await said(house, typed))[-1]

        assert isinstance(again, TurnSuspended)
        assert len(model.asked) == 1
        assert_nowhere(tmp_path, model)
