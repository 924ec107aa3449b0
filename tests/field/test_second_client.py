"""Another client reads what the fake Bot API serves: in journeys of the bot, and by itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiogram import Bot
from aiogram.client.session.aiohttp import AiohttpSession
from aiogram.client.telegram import TelegramAPIServer
from aiogram.exceptions import (
    TelegramBadRequest,
    TelegramConflictError,
    TelegramForbiddenError,
    TelegramMigrateToChat,
    TelegramRetryAfter,
    TelegramServerError,
)
from aiogram.types import (
    BotCommand,
    BufferedInputFile,
    ForceReply,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    InlineQueryResultArticle,
    InputMediaPhoto,
    InputTextMessageContent,
    KeyboardButton,
    ReactionTypeEmoji,
    ReplyKeyboardMarkup,
    ReplyParameters,
)

from tests.field.field import LONG, NOW, Field
from tests.support.fakeapi import FakeTelegram
from tests.support.house import until
from tests.support.served import kinds, problems

PNG = b"\x89PNG\r\n\x1a\n" + bytes(64)
OGG = b"OggS" + bytes(64)
EVERYTHING = [
    "message", "edited_message", "callback_query", "my_chat_member", "chat_member",
    "message_reaction", "guest_message", "stopped_message_generation",
]  # fmt: skip


def test_what_the_bot_was_served_in_its_journeys_is_what_telegram_would_serve(field: Field):
    tg = field.telegram
    host = field.person("it", last_name="Rossi")
    field.teach("che ore sono?", NOW, answer="le **tre**", delay=0.7)
    (field.notes / "via.md").write_text("x")
    field.teach("elimina ~/notes/via.md", ("delete_files", {"paths": ["~/notes/via.md"]}))
    field.teach("dove sono?", ("request_location_from_user", {"prompt": "Dove?"}), answer="qui")

    field.ask(host, "che ore sono?", "tre")
    tg.say(host, "che ore sono?", reply_to="bot")
    field.hear(host, "tre")
    tg.edit(host, "che ora è?")
    tg.react(host, "👍")
    field.ask(host, "elimina ~/notes/via.md", buttons=["^✅"])
    tg.press(host, "^✅")
    field.hear(host, kind="edit")
    field.hear(host, kind="send")
    field.ask(host, "dove sono?")
    tg.press(host, "^📍", lat=44.5, lon=11.3)
    field.hear(host, "qui")
    tg.location(host, 45.0, 7.6, accuracy=10.0, live_period=900)
    tg.move(host, 45.1, 7.6)
    tg.move(host, 45.2, 7.6, stop=True)
    tg.album(host, [PNG, PNG], caption="due foto")
    tg.file(host, b"data", name="a.pdf", mime="application/pdf", caption="leggi")
    tg.file(host, OGG, name="v.ogg", kind="voice")
    origin = {"type": "hidden_user", "sender_user_name": "X", "date": 1}
    tg.say(host, "inoltrato", forward_origin=origin)
    tg.say(host, None, contact={"phone_number": "+39000", "first_name": "Ada"})
    tg.bot_status(host, "kicked")
    tg.bot_status(host, "member")
    _in_groups(field, host)
    tg.guest(host, "@fake_test_bot che ore sono?")
    field.ask(host, "/status")
    field.wait_for(lambda: not tg.tg.updates, timeout=LONG, what="the last update")

    assert problems(tg.calls()) == []
    assert kinds(tg.calls()) >= {
        "getMe", "setMyCommands", "sendMessage", "editMessageText",
        "answerCallbackQuery", "message", "edited_message", "callback_query", "my_chat_member",
        "message_reaction", "message.reply_to_message", "message.location",
        "message.media_group_id", "message.document", "message.voice", "message.forward_origin",
        "message.contact", "message.is_topic_message", "message.forum_topic_created",
        "message.migrate_to_chat_id", "message.new_chat_members",
    }  # fmt: skip


def _in_groups(field: Field, host: str) -> None:
    tg = field.telegram
    tg.group("forum", [host], forum=True, bot=False, admins=[host])
    tg.bot_status(host, "administrator", chat="forum")
    field.hear("forum", buttons=["^✅"])
    tg.press(host, "^✅", chat="forum")
    field.hear("forum", kind=("edit", "send"))
    topic = tg.topic(host, "forum", "Spesa")
    tg.say(host, "@fake_test_bot che ore sono?", chat="forum", thread=topic)
    tg.group("vecchio", [host], type="group")
    tg.say(host, "/start@fake_test_bot", chat="vecchio")
    tg.migrate("vecchio", host)
    tg.join(host, "vecchio")
    tg.say(host, "da amministratore", chat="forum", as_chat="forum")


@pytest.fixture
async def client() -> AsyncIterator[tuple[FakeTelegram, Bot]]:
    async with _client() as both:
        yield both


@asynccontextmanager
async def _client() -> AsyncIterator[tuple[FakeTelegram, Bot]]:
    tg = await FakeTelegram(callback_ttl=5).start()
    session = AiohttpSession(api=TelegramAPIServer.from_base(tg.url))
    bot = Bot(tg.token, session=session)
    tg.add_user(1, "Ada", username="ada")
    tg.add_group(-1001, "Casa", [1], forum=True, admins=[1])
    try:
        yield tg, bot
    finally:
        await session.close()
        await tg.stop()


async def test_another_client_sends_edits_and_deletes(client: tuple[FakeTelegram, Bot]):
    tg, bot = client
    keyboard = InlineKeyboardMarkup(
        inline_keyboard=[[InlineKeyboardButton(text="Sì", callback_data="y")]]
    )

    me = await bot.get_me()
    sent = await bot.send_message(1, "<b>ciao</b>", parse_mode="HTML", reply_markup=keyboard)
    edited = await bot.edit_message_text("fatto", chat_id=1, message_id=sent.message_id)
    replied = await bot.send_message(
        1, "qui", reply_parameters=ReplyParameters(message_id=sent.message_id)
    )
    place = ReplyKeyboardMarkup(
        keyboard=[[KeyboardButton(text="📍", request_location=True)]], resize_keyboard=True
    )
    await bot.send_message(1, "dove?", reply_markup=place)
    await bot.send_message(1, "come?", reply_markup=ForceReply(selective=True))
    photos = await bot.send_media_group(
        1, [InputMediaPhoto(media=BufferedInputFile(PNG, f"{n}.png")) for n in range(2)]
    )
    document = await bot.send_document(1, BufferedInputFile(b"x" * 10, "a.txt"), caption="file")
    voice = await bot.send_voice(1, BufferedInputFile(OGG, "v.ogg"))
    await bot.send_message_draft(1, draft_id=7, text="sto scriv")
    await bot.send_chat_action(1, "typing")
    await bot.set_message_reaction(1, sent.message_id, [ReactionTypeEmoji(emoji="👍")])
    copied = await bot.copy_message(1, 1, sent.message_id)
    forwarded = await bot.forward_message(1, 1, sent.message_id)
    await bot.delete_message(1, sent.message_id)
    assert document.document is not None
    file = await bot.get_file(document.document.file_id)
    assert file.file_path is not None
    loaded = await bot.download_file(file.file_path)

    assert me.supports_guest_queries
    assert sent.entities is not None
    assert sent.entities[0].type == "bold"
    assert edited.text == "fatto"
    assert replied.reply_to_message is not None
    assert len({photo.media_group_id for photo in photos}) == 1
    assert voice.voice is not None
    assert copied.message_id > forwarded.message_id - 3
    assert forwarded.forward_origin is not None
    assert loaded is not None
    assert loaded.read() == b"x" * 10
    assert problems(tg.calls) == []


async def test_another_client_reads_every_kind_of_update(client: tuple[FakeTelegram, Bot]):
    tg, bot = client
    await bot.get_updates(timeout=0, allowed_updates=EVERYTHING)
    sent = await bot.send_message(
        1,
        "?",
        reply_markup=InlineKeyboardMarkup(
            inline_keyboard=[[InlineKeyboardButton(text="Sì", callback_data="y")]]
        ),
    )
    said = await tg.user_send(1, 1, "ciao @fake_test_bot /help")
    await tg.user_edit(1, said["message_id"], "ciao!")
    await tg.user_press(1, 1, "Sì")
    await tg.user_react(1, 1, sent.message_id, "👎")
    await bot.send_message_draft(1, draft_id=3, text="…", can_stop=True)
    await tg.user_stop_draft(1)
    for kind, name in (("photo", "a.jpg"), ("video", "v.mp4"), ("audio", "a.mp3")):
        await tg.user_send(1, 1, "nota", file=(kind, name, PNG), media_group_id="9")
    for kind in ("voice", "video_note", "sticker", "animation"):
        await tg.user_send(1, 1, file=(kind, "x", OGG))
    place = {"latitude": 1.0, "longitude": 2.0}
    await tg.user_send(
        1, 1, location=place, venue={"location": place, "title": "Bar", "address": "Via"}
    )
    topic = await bot.create_forum_topic(-1001, "Spesa")
    await tg.user_send(-1001, 1, "/start", thread=topic.message_thread_id)
    await tg.set_bot_status(-1001, 1, "administrator")
    await tg.user_join(-1001, 1)
    await tg.user_send(-1001, 1, "anonimo", as_chat=-1001)
    await tg.guest_ask(1, "@fake_test_bot ciao")

    updates = await bot.get_updates(timeout=0, allowed_updates=EVERYTHING)
    query = next(u.callback_query for u in updates if u.callback_query)
    assert await bot.answer_callback_query(query.id, text="ok")
    guest = next(u.guest_message for u in updates if u.guest_message)
    assert guest.guest_query_id is not None
    answer = InlineQueryResultArticle(
        id="1", title="t", input_message_content=InputTextMessageContent(message_text="ecco")
    )
    shown = await bot.answer_guest_query(guest.guest_query_id, answer)
    members = [await bot.get_chat_member(-1001, user) for user in (1, bot.id)]
    await bot.get_chat_administrators(-1001)
    chat = await bot.get_chat(-1001)
    await bot.set_my_commands([BotCommand(command="stop", description="Ferma")])

    assert shown.inline_message_id
    assert [member.status for member in members] == ["member", "administrator"]
    assert chat.is_forum
    assert {u.event_type for u in updates} == set(EVERYTHING)
    assert problems(tg.calls) == []


async def test_another_client_understands_every_refusal(client: tuple[FakeTelegram, Bot]):
    tg, bot = client
    tg.add_user(2, "Bea", started=False)
    tg.add_group(-5, "Vecchio", [1], type="group")
    new_id = await tg.migrate(-5, 1)

    with pytest.raises(TelegramMigrateToChat) as moved:
        await bot.send_message(-5, "x")
    with pytest.raises(TelegramForbiddenError):
        await bot.send_message(2, "x")
    with pytest.raises(TelegramBadRequest):
        await bot.send_message(1, "<b>x", parse_mode="HTML")
    tg.fault("sendMessage", code=429, retry_after=7)
    with pytest.raises(TelegramRetryAfter) as wait:
        await bot.send_message(1, "x")
    tg.fault("sendMessage", code=502)
    with pytest.raises(TelegramServerError):
        await bot.send_message(1, "x")
    seen = await bot.get_updates(timeout=0)
    offset = seen[-1].update_id + 1
    first = asyncio.create_task(bot.get_updates(offset, timeout=30))
    await until(lambda: tg.poll is not None)
    await bot.get_updates(offset, timeout=0)
    with pytest.raises(TelegramConflictError):
        await first

    assert moved.value.migrate_to_chat_id == new_id
    assert wait.value.retry_after == 7


@pytest.mark.parametrize(
    ("call", "what"),
    [
        ({"method": "getMe", "result": {"id": 1, "is_bot": True}}, "first_name"),
        (
            {"method": "getMe", "result": {"id": 1, "is_bot": True, "first_name": "x", "nose": 1}},
            "nose",
        ),
        ({"method": "getUpdates", "result": [{"update_id": 1, "message": {"text": "x"}}]}, "date"),
    ],
    ids=["missing", "invented", "update"],
)
def test_reader_complains_of_what_telegram_would_not_serve(call: dict[str, object], what: str):
    assert any(what in problem for problem in problems([call]))
