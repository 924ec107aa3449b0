"""The scenes of the transcripts with more than one person, with more than words, or with a
Telegram that does not play along. What the bot says stands nowhere here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.journeys.cards import Scene
from tests.journeys.stage import GUEST, HOST, Stage
from tests.support.scripted_model import Rule

if TYPE_CHECKING:
    from tests.journeys.transcripts import Player

ME = "@fake_test_bot"
PNG = b"\x89PNG\r\n\x1a\n" + bytes(64)
OGG = b"OggS" + bytes(64)
ON = "^✅ (Accendi|Turn on)"


def _group(player: Player) -> str:
    """A group with topics that the bot has just been put into."""
    name = f"famiglia-{player.lang}"
    title = {"it": "Famiglia", "en": "Family"}[player.lang]
    player.stage.telegram.group(name, [HOST, GUEST], title=title, forum=True, bot=False)
    player.note({"it": "Tu metti il bot nel gruppo", "en": "You put the bot into the group"})
    player.stage.telegram.bot_status(HOST, "member", chat=name)
    player.hear()
    return name


def _in_a_topic(player: Player, request: str) -> None:
    group = _group(player)
    player.press(ON, chat=group)
    spese = player.stage.telegram.topic(
        HOST, group, {"it": "Spesa", "en": "Shopping"}[player.lang]
    )
    player.say(f"{ME} {request}", chat=group, thread=spese)
    card = player.card(group)
    player.tap(GUEST, card, "^✅", chat=group)
    player.press("^✅", chat=group)
    player.say({"it": "che bello", "en": "how nice"}[player.lang], GUEST, chat=group)
    place = {"it": "dov'è il pane più vicino?", "en": "where is the nearest bread?"}[player.lang]
    player.say(f"{ME} {place}", chat=group, thread=spese)
    player.press("^📍", lat=44.6, lon=10.9)


def _a_list(stage: Stage, lang: str) -> None:
    (stage.notes / "lista.md").write_text("pane\n", encoding="utf-8")
    place = {"it": "dov'è il pane più vicino?", "en": "where is the nearest bread?"}[lang]
    prompt = {"it": "Per trovarlo mi serve dove sei.", "en": "I need to know where you are."}[lang]
    asks = ("request_location_from_user", {"prompt": prompt})
    stage.model.rules[:0] = [
        Rule(user=place[:12], after=0, calls=[asks]),
        Rule(user=place[:12], text={"it": "Al forno.", "en": "At the baker's."}[lang]),
    ]


def _privacy(player: Player, request: str) -> None:
    group = f"famiglia-{player.lang}"
    player.say(request, chat=group)
    player.note({"it": "ora vede tutto", "en": "now it sees everything"})
    player.stage.telegram.bot_status(HOST, "administrator", chat=group)
    player.say(request, chat=group)


def _album(player: Player, request: str) -> None:
    player.note({"it": "due foto in un album", "en": "two photos as an album"})
    player.stage.telegram.album(HOST, [PNG, PNG + b"2"], caption=request)
    player.hear(wait_s=6.0)
    player.note({"it": "un messaggio vocale", "en": "a voice message"})
    player.stage.telegram.file(HOST, OGG, name="v.ogg", kind="voice")
    player.hear(wait_s=4.0)
    player.note({"it": "un file di 30 MB", "en": "a file of 30 MB"})
    player.stage.telegram.file(HOST, b"x", name="film.mkv", size=30 << 20)
    player.hear(wait_s=4.0)


def _slow(stage: Stage, lang: str) -> None:
    words = {"it": ("aspetta un po'", "Ho aspettato."), "en": ("wait a bit", "I have waited.")}
    request, answer = words[lang]
    stage.model.rules[:0] = [Rule(user=f"^{request}", text=answer, delay=3.0)]


def _edits(player: Player, request: str) -> None:
    slow = {"it": "aspetta un po'", "en": "wait a bit"}[player.lang]
    wrong = {"it": "dimmi l'ora a Tokio", "en": "tell me the time in Tokio"}[player.lang]
    player.say(slow, waits=False)
    waiting = player.say(wrong, waits=False)
    player.edit(request, waiting)
    player.edit(f"{request}!!", waiting)
    running = player.say(slow, waits=False)
    player.stage.wait_for(
        lambda: player.stage.rows("SELECT 1 FROM turns WHERE state = 'running'"), what="the turn"
    )
    player.edit({"it": "aspetta un po' di più", "en": "wait a bit more"}[player.lang], running)


def _blocked(player: Player, request: str) -> None:
    slow = {"it": "aspetta un po'", "en": "wait a bit"}[player.lang]
    player.say(slow, GUEST, waits=False)
    player.note({"it": "l'ospite blocca il bot", "en": "the guest blocks the bot"})
    player.stage.telegram.bot_status(GUEST, "kicked")
    player.hear(wait_s=6.0)
    player.say(request)
    player.say("/status")
    player.say("/start", GUEST)
    player.say(request, GUEST)


def _flood(player: Player, request: str) -> None:
    chat = player.stage.telegram.names[HOST]
    player.note({"it": "Telegram dice di aspettare", "en": "Telegram says to wait"})
    player.stage.telegram.fault("sendMessage", code=429, chat_id=chat, retry_after=4)
    player.say(request)
    player.hear(wait_s=8.0)


def _elsewhere(player: Player, request: str) -> None:
    """Somebody names the bot where it is no member."""
    for name in (HOST, player.stranger("Zoe")):
        player.says(name, f"{ME} {request}", {"it": "altrove", "en": "elsewhere"}[player.lang])
        player.stage.telegram.guest(name, f"{ME} {request}")
        player.hear(wait_s=6.0)


def _knocks(player: Player, request: str) -> None:
    name = player.stranger("Luca")
    player.say(request, name)
    player.hear(wait_s=3.0)
    player.press("^✅")
    player.say(
        {"it": "che ore sono a Tokyo?", "en": "what time is it in Tokyo?"}[player.lang], name
    )


def _time(lang: str) -> tuple[str, dict[str, str]]:
    return ("get_now", {"timezone": "Tokyo"})


_TIME = {"it": "A Tokyo è tardi.", "en": "It is late in Tokyo."}
_ASKS = {"it": "che ore sono a Tokyo?", "en": "what time is it in Tokyo?"}

CROWD_SCENES: tuple[Scene, ...] = (
    Scene(
        "group topic",
        "A group with a topic: turned on, asked, approved by who asked, a place in private",
        {"it": "elimina ~/notes/lista.md", "en": "delete ~/notes/lista.md"},
        (lambda lang: ("delete_files", {"paths": ["~/notes/lista.md"]}),),
        _in_a_topic,
        _a_list,
    ),
    Scene(
        "group privacy",
        "What the bot sees in a group",
        {"it": f"/start{ME}", "en": f"/start{ME}"},
        (),
        _privacy,
    ),
    Scene(
        "content",
        "An album, a voice message, a file that is too big",
        {"it": "mettile via", "en": "put them away"},
        (),
        _album,
        end={"it": "Le ho ricevute.", "en": "I have them."},
    ),
    Scene(
        "edit",
        "Corrected while it waits, when it is done, and while it runs",
        {"it": "dimmi l'ora a Tokyo", "en": "tell me the time in Tokyo"},
        (_time,),
        _edits,
        _slow,
        _TIME,
    ),
    Scene(
        "blocked",
        "Somebody blocks the bot, and comes back",
        _ASKS,
        (_time,),
        _blocked,
        _slow,
        _TIME,
    ),
    Scene("flood", "Telegram says wait", _ASKS, (_time,), _flood, end=_TIME),
    Scene("elsewhere", "Named where it is no member", _ASKS, (_time,), _elsewhere, end=_TIME),
    Scene(
        "door",
        "A stranger is let in by a button",
        {"it": "/start", "en": "/start "},
        (),
        _knocks,
    ),
)
