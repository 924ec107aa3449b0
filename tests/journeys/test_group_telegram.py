"""A guest asks in a topic for what only they may tell: asked alone, answered in the topic."""

from __future__ import annotations

from pathlib import Path

from tests.support.scripted_model import Rule
from tests.support.world import open_world

SECRET = "canarino-sesamo-81"
LOGIN = [{"var": "word", "prompt": "Che parola d'ordine?", "kind": "secret"}]
RULES = [
    Rule(user="posta", after=0, calls=[("get_inputs", {"fields": LOGIN})]),
    Rule(user="posta", after=1, text="Tre messaggi nuovi."),
    Rule(text="Ciao a tutti."),
]


def test_secret_wished_in_a_topic_is_asked_alone_and_a_closed_private_chat_is_told(tmp_path: Path):
    with open_world(tmp_path, RULES) as world:
        tg = world.telegram
        tg.start_bot()
        world.host("anna")
        world.guest("luca")
        tg.group("forum", ["anna", "luca"], title="Forum", forum=True)
        topic = tg.topic("anna", "forum", "Lavoro")
        tg.say("anna", "@fake_test_bot ciao", chat="forum")
        tg.expect("forum", buttons=["Accendi qui"])
        tg.press("anna", "Accendi qui", chat="forum")
        tg.expect("forum", "Qui rispondo a chi mi nomina")

        asked = tg.say("luca", "@fake_test_bot leggi la posta", chat="forum", thread=topic)
        notice = tg.expect("forum", "privato")
        tg.expect("luca", "parola d'ordine")
        tg.say("luca", SECRET)
        answer = tg.expect("forum", "Tre messaggi nuovi")
        assert ("leggi la posta",) in world.rows("SELECT request FROM turns")
        tg.say("luca", "/forget@fake_test_bot", chat="forum", thread=topic)
        card = tg.expect("forum", "Dimentico quello che ci siamo detti", buttons=["^🗑 Sì"])
        tg.press("anna", "^🗑 Sì", chat="forum", message_id=card["message"]["message_id"])
        tg.expect("forum", "non è per te", kind="answer")
        tg.press("luca", "^🗑 Sì", chat="forum", message_id=card["message"]["message_id"])
        tg.expect("forum", "Dimenticato alle", kind="edit")
        assert ("leggi la posta",) not in world.rows("SELECT request FROM turns")
        tg.bot_status("luca", "kicked")
        tg.say("luca", "@fake_test_bot leggi la posta", chat="forum", thread=topic)
        told = tg.expect("forum", "privato", where=lambda e: "parola" not in str(e))
        why = tg.expect("forum", "apri la chat con me, premi Avvia")

        for event in (notice, answer, told, why):
            assert event["message"]["message_thread_id"] == topic
        assert answer["message"]["reply_to_message"]["message_id"] == asked["message_id"]
        assert SECRET not in str(tg.texts("forum"))
        assert all(
            SECRET not in str(m) for m in tg.tg.chats[tg.names["luca"]]["messages"].values()
        )
