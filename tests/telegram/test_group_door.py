"""Groups over the fake Bot API: off until the host turns them on, then heard when addressed."""

from __future__ import annotations

import pytest

from tests.support.harness import Failed

ON = {"it": "Accendi qui", "en": "Turn on here"}


@pytest.fixture
def house(world):
    """A group of the host, a guest and somebody unknown, whom the bot is in but not turned on."""
    world.know("anna", "luca")
    world.user("carla", language_code="it")
    world.group("casa", ["anna", "luca", "carla"], title="Casa")
    world.start_bot()
    return world


def turn_on(world, group="casa", lang="it"):
    """The host turns the group on by the button that comes when the bot is named there."""
    world.say("anna", "@fake_test_bot eccoci", chat=group)
    world.expect(group, buttons=[ON[lang]])
    world.press("anna", ON[lang], chat=group)
    world.expect(group, "Acceso da te|Turned on by you", kind="edit")
    world.expect(group, "@fake_test_bot")


def test_group_is_silent_until_the_host_turns_it_on_and_then_hears_who_names_it(house):
    house.say("carla", "@fake_test_bot echo segreto-carla", chat="casa")
    house.expect("casa", "sono spento: mi può accendere solo chi mi ha in casa", no_buttons=["."])
    house.say("luca", "@fake_test_bot echo segreto-luca", chat="casa")
    house.expect_none("casa", 0.7)
    house.say("anna", "fra noi: echo segreto-anna", chat="casa")
    house.say("anna", "@fake_test_bot echo ciao-spento", chat="casa")
    asked = house.expect("casa", "Lo può decidere solo", buttons=[ON["it"]])
    house.press("luca", ON["it"], chat="casa")
    house.expect("casa", "solo chi mi ha in casa", kind="answer")
    house.press("anna", ON["it"], chat="casa")
    house.expect("casa", r"✅ Acceso da te alle \d", kind="edit")
    seen = house.expect("casa", "setprivacy a @BotFather, scegli @fake_test_bot")
    house.say("luca", "@fake_test_bot echo buongiorno", chat="casa")
    answer = house.expect("casa", "^buongiorno$")
    house.say("luca", "echo e ora?", chat="casa", reply_to=answer["message"]["message_id"])
    house.expect("casa", r"^e ora\?$")

    assert "solo i comandi e le risposte" in seen["message"]["text"]
    assert asked["message"]["reply_to_message"]["from"]["id"] == house.names["anna"]
    assert house.rows("SELECT state FROM chats") == [("on",)]
    stored = str(house.rows("SELECT body FROM inbox")) + str(house.rows("SELECT * FROM turns"))
    assert "segreto" not in stored
    house.assert_clean()


def test_host_added_the_bot_is_asked_there_and_a_guest_adding_it_asks_the_host_in_private(world):
    world.know("anna", "luca")
    world.user("carla", language_code="it")
    for name, by in (("prima", "anna"), ("seconda", "luca"), ("terza", "carla")):
        world.group(name, ["anna", by], title=name.title(), bot=False)
    world.start_bot()

    world.bot_status("anna", "member", chat="prima")
    world.expect("prima", buttons=[ON["it"], "Resta spento"])
    world.press("anna", "Resta spento", chat="prima")
    world.expect("prima", "Spento da te", kind="edit")
    world.bot_status("luca", "member", chat="seconda")
    world.expect("anna", "nel gruppo «Seconda»", buttons=[ON["it"]])
    world.press("anna", ON["it"])
    world.expect("anna", "Acceso da te .* «Seconda»", kind="edit")
    world.expect("seconda", "Qui rispondo a chi mi nomina")
    world.bot_status("carla", "member", chat="terza")
    world.say("carla", "/start", chat="terza")
    world.expect("terza", "sono spento")
    world.expect_none("anna", 0.5)

    found = world.rows("SELECT title, state FROM chats ORDER BY title")
    assert found == [("Prima", "off"), ("Seconda", "on"), ("Terza", "new")]
    world.assert_clean()


def test_member_who_is_not_known_hears_once_how_to_be_let_in_and_is_not_kept(house):
    turn_on(house)
    house.say("carla", "@fake_test_bot echo segreto", chat="casa")
    house.expect("casa", "Qui rispondo solo a chi conosco.*in privato")
    house.say("carla", "@fake_test_bot echo segreto due", chat="casa")
    house.expect_none("casa", 0.7)
    house.say("luca", "/pair ABCD2345", chat="casa")
    house.expect("casa", "in privato: qui li leggono tutti")

    assert "segreto" not in str(house.rows("SELECT body FROM inbox"))
    house.assert_clean()


def test_start_in_a_group_says_what_the_bot_sees_and_lets_the_host_turn_it_off(house):
    turn_on(house)
    house.say("luca", "/start", chat="casa")
    little = house.expect("casa", "privacy del bot è accesa", no_buttons=["."])
    house.tg.me_full["can_read_all_group_messages"] = True
    house.say("anna", "/start@fake_test_bot", chat="casa")
    house.expect("casa", "privacy del bot è spenta.*aggiungimi di nuovo", buttons=["Spegni qui"])
    house.bot_status("anna", "administrator", chat="casa")
    house.say("anna", "/start", chat="casa")
    house.expect("casa", "Sono amministratore", buttons=["Spegni qui"])
    house.press("luca", "Spegni qui", chat="casa")
    house.expect("casa", "solo chi mi ha in casa", kind="answer")
    house.press("anna", "Spegni qui", chat="casa")
    house.expect("casa", "Spento da te", kind="edit")
    house.say("luca", "@fake_test_bot echo ancora", chat="casa")
    house.expect("casa", "sono spento")

    assert "togli" in little["message"]["text"]
    assert house.rows("SELECT state, is_admin FROM chats") == [("off", 1)]
    house.assert_clean()


def test_bot_put_out_and_let_in_again_is_off_until_it_is_turned_on_anew(house):
    turn_on(house)
    house.bot_status("carla", "kicked", chat="casa")
    house._wait(lambda: house.rows("SELECT state FROM chats") == [("gone",)], 45, "gone")
    house.bot_status("luca", "member", chat="casa")
    house.expect("anna", "nel gruppo «Casa»", buttons=[ON["it"]])
    house.say("luca", "@fake_test_bot echo di nuovo", chat="casa")
    house.expect("casa", "sono spento")

    assert house.rows("SELECT state FROM chats") == [("new",)]


def test_channels_anonymous_administrators_and_other_bots_are_not_heard(house):
    turn_on(house)
    house.group("canale", ["anna"], type="channel")
    house.say("anna", "@fake_test_bot echo da anonimo", chat="casa", as_chat="casa")
    house.say("anna", "@fake_test_bot echo dal canale", chat="casa", as_chat="canale")
    house.say("anna", "@fake_test_bot echo nel canale", chat="canale")
    house.expect_none("casa", 0.7)
    house.expect_none("canale", 0.1)
    house.say("anna", "@fake_test_bot echo io", chat="casa")
    house.expect("casa", "^io$")
    house.assert_clean()


def test_english_host_is_asked_and_told_in_english(world):
    world.know("anna", lang="en")
    world.group("club", ["anna"], title="Club")
    world.start_bot()

    turn_on(world, "club", "en")
    world.say("anna", "/start", chat="club")
    world.expect("club", "privacy mode is on.*setprivacy to @BotFather", buttons=["Turn off here"])
    with pytest.raises(Failed):
        world.expect("club", "accesa|spento", timeout=0.2)


def grown(world, name="vecchio"):
    """A basic group that is on and has become a supergroup; its former and present ids."""
    old = world.names[name]
    return old, world.migrate(name, by="anna")


@pytest.fixture
def basic(world):
    world.know("anna", "luca")
    world.group("vecchio", ["anna", "luca"], title="Vecchio", type="group")
    world.start_bot()
    turn_on(world, "vecchio")
    return world


def test_group_that_becomes_a_supergroup_goes_on_where_it_was(basic):
    basic.say("anna", "@fake_test_bot ask approve", chat="vecchio")
    basic.expect("vecchio", "Elimino 34 file")
    old, new = grown(basic)
    basic._wait(
        lambda: basic.rows("SELECT DISTINCT chat_key FROM outbox") == [(f"telegram:{new}:",)],
        45,
        "everything moved",
    )
    basic.say("luca", "@fake_test_bot echo sempre qui", chat="vecchio")
    basic.expect("vecchio", "^sempre qui$")

    assert basic.rows("SELECT chat_id, moved_to FROM chats ORDER BY moved_to") == [
        (str(new), None),
        (str(old), str(new)),
    ]
    basic.assert_clean()


def test_answer_refused_because_the_group_moved_is_sent_once_to_the_new_one(basic):
    basic.say("luca", "@fake_test_bot slow 2 eccomi", chat="vecchio")
    basic.expect("vecchio", kind="action")
    basic.tg.allowed = basic.tg.allowed - {"message"}  # Telegram's word of it does not come
    old, new = grown(basic)
    basic.expect("vecchio", "^eccomi$")
    basic.tg.allowed = basic.tg.allowed | {"message"}
    basic.say("luca", "@fake_test_bot echo e poi", chat="vecchio")
    basic.expect("vecchio", "^e poi$")

    assert basic.texts("vecchio").count("eccomi") == 1
    sends = [c for c in basic.calls("sendMessage") if c["params"].get("text") == "eccomi"]
    assert [int(c["params"]["chat_id"]) for c in sends] == [old, new]
    assert basic.rows("SELECT state FROM chats WHERE moved_to IS NULL") == [("on",)]


def test_request_that_waited_in_the_old_group_is_worked_in_the_new_one(basic):
    basic.stop_bot()
    basic.say("luca", "@fake_test_bot echo prima", chat="vecchio")
    grown(basic)
    basic.say("luca", "@fake_test_bot echo dopo", chat="vecchio")
    basic.start_bot()
    basic.expect("vecchio", "^prima$")
    basic.expect("vecchio", "^dopo$")


def messages(world, chat, text):
    """The bot's messages of a chat whose text is exactly this."""
    mine = world.tg.me["id"]
    found = world.tg.chats[world.names[chat]]["messages"].values()
    return [m for m in found if m["from"]["id"] == mine and m.get("text") == text]


@pytest.fixture
def forum(world):
    world.know("anna", "luca")
    world.group("forum", ["anna", "luca"], title="Forum", forum=True)
    world.start_bot()
    turn_on(world, "forum")
    return world


def test_topics_are_conversations_of_their_own_and_general_is_named_by_no_id(forum):
    bread = forum.topic("anna", "forum", "Spesa")
    trip = forum.topic("anna", "forum", "Viaggio")
    asked = forum.say("luca", "@fake_test_bot work 60", chat="forum", thread=bread)
    forum.expect("forum", kind="action")
    other = forum.say("luca", "@fake_test_bot echo in treno", chat="forum", thread=trip)
    forum.expect("forum", "^in treno$")
    general = forum.say("anna", "@fake_test_bot echo per tutti", chat="forum")
    forum.expect("forum", "^per tutti$")
    progress = forum.expect("forum", "Cerco i PDF")
    forum.say("luca", "/status", chat="forum", thread=bread)
    status = forum.expect("forum", "sto lavorando a")
    forum.say("luca", "/status@fake_test_bot", chat="forum", thread=trip)
    idle = forum.expect("forum", "non sto lavorando")
    forum.say("luca", "/stop", chat="forum", thread=bread)
    forum.expect("forum", "^fatto$")

    for event, said in ((progress, asked), (status, None), (idle, None)):
        reply = event["message"]["reply_to_message"]
        assert said is None or reply["message_id"] == said["message_id"]
    (in_trip,) = messages(forum, "forum", "in treno")
    (in_general,) = messages(forum, "forum", "per tutti")
    (in_bread,) = messages(forum, "forum", "fatto")
    assert (in_trip["message_thread_id"], in_bread["message_thread_id"]) == (trip, bread)
    assert "message_thread_id" not in in_general
    replied = [m["reply_to_message"]["message_id"] for m in (in_trip, in_general, in_bread)]
    assert replied == [m["message_id"] for m in (other, general, asked)]
    typing = [c["params"].get("message_thread_id") for c in forum.calls("sendChatAction")]
    assert {str(t) for t in typing if t} <= {str(bread), str(trip)}
    forum.assert_clean()


@pytest.mark.parametrize("text", [None, "TOPIC_CLOSED"], ids=["deleted", "closed"])
def test_topic_that_is_gone_is_answered_in_general_with_a_note_and_its_questions_work(forum, text):
    bread = forum.topic("anna", "forum", "Spesa")
    forum.say("luca", "@fake_test_bot slow 1 pane", chat="forum", thread=bread)
    forum.expect("forum", kind="action")
    if text is None:
        del forum.tg.chats[forum.names["forum"]]["topics"][bread]
    else:
        forum.fault("sendMessage", code=400, text=text, times=1)
    answer = forum.expect("forum", "chiuso o non c'è più: rispondo qui.*pane")
    forum.say("luca", "@fake_test_bot echo e qui", chat="forum")
    forum.expect("forum", "^e qui$")

    assert "message_thread_id" not in answer["message"]
    assert forum.rows("SELECT count(*) FROM unreachable") == [(0,)]


def test_menus_are_for_private_chats_groups_administrators_and_the_host(world):
    world.know("anna", "luca")
    world.group("casa", ["anna", "luca"], admins=["anna"])
    world.start_bot()
    world._wait(lambda: "console" in world.commands("anna", lang="it"), 45, "menus")

    for lang in ("", "it", "en"):
        everybody = ["help", "undo", "stop", "status", "lang", "tz", "forget"]
        assert world.commands("luca", "casa", lang) == everybody
        assert world.commands("anna", "casa", lang) == ["start", *everybody]
        assert world.commands("luca", lang=lang) == [*everybody, "start"]
        assert world.commands("anna", lang=lang)[:8] == [*everybody, "start"]
        assert set(world.commands("anna", lang=lang)[8:]) >= {"pair", "praxis", "console"}


def test_tz_says_takes_and_refuses_time_zones_in_both_languages(world):
    world.know("anna")
    world.start_bot()

    world.say("anna", "/tz")
    world.expect("anna", r"Il tuo fuso orario è Europe/Rome: lì sono le \d+:\d\d")
    world.say("anna", "/tz Londra")
    world.expect("anna", "quelli di Europe/London")
    world.say("anna", "/tz atlantide")
    world.expect("anna", "Non conosco il fuso orario «atlantide»")
    world.say("anna", "/lang en")
    world.say("anna", "/tz new york")
    world.expect("anna", "those of America/New_York")
    world.say("anna", "/tz nowhere")
    world.expect("anna", "do not know the time zone “nowhere”")

    assert world.rows("SELECT tz FROM actors") == [("America/New_York",)]


def test_album_is_heard_whole_whichever_of_its_captions_names_the_bot(house):
    turn_on(house)
    house.bot_status("anna", "administrator", chat="casa")
    house.stop_bot()
    for number, caption in enumerate((None, "@fake_test_bot given", None)):
        house.file(
            "luca",
            b"\x89PNG" + bytes([number]),
            name=f"{number}.jpg",
            kind="photo",
            caption=caption,
            chat="casa",
            media_group_id="11",
        )
    house.file("luca", b"\x89PNG9", name="9.jpg", kind="photo", chat="casa", media_group_id="12")
    house.start_bot()

    said = house.expect("casa", "given")["message"]["text"]

    assert said.count("(5)") == 3, said
    house.expect_none("casa", 1.0)


def test_file_goes_to_the_topic_where_it_was_asked_for(house, tmp_path):
    turn_on(house)
    topic = house.topic("anna", "casa", "Spesa")
    folder = house.home / "workspace"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "lista.txt").write_text("pane")
    house.say("anna", f"@fake_test_bot files {folder}", chat="casa", thread=topic)

    sent = house.expect("casa", has="document")

    assert sent["message"]["message_thread_id"] == topic
    assert house.download(sent) == b"pane"
