"""What a request asks for: same wish, same meaning; near misses never."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.levels.meaning import MAX_CHARS, meaning_of

SAME = [
    ("quante foto ho?", "conta le mie foto"),
    ("quante foto ho?", "how many photos do I have?"),
    ("mostrami le cartelle vuote", "which of my folders are empty?"),
    ("elenca i contatti", "fammi vedere la rubrica"),
    ("riepilogo della posta non letta", "sum up my unread emails"),
    ("che ora è?", "potresti dirmi l'ora, per favore?"),
    ("che ora è?", "do you know what time it is?"),
    ("dove siamo?", "where are we?"),
    ("che tempo fa?", "how is the weather?"),
    ("spazio libero sul disco", "how much space is left on the disk?"),
    ("quali file nascosti ci sono?", "list the hidden files"),
    ("ordina le foto dalla più recente", "sort my photos, newest first"),
    ("annulla", "undo"),
    ("annulla l'ultima cosa che hai fatto", "please undo your last action"),
    ("raggruppa i documenti per tipo", "group my documents by type"),
    ("mosrtami le foto", "mostrami le foto"),
    ("show my phtoos", "show my photos"),
]
OTHER = [
    ("mostrami le cartelle vuote", "mostrami le cartelle non vuote"),
    ("cancella le foto", "copia le foto"),
    ("elenca i contatti", "elenca gli eventi"),
    ("ordina le foto dalla più recente", "ordina le foto dalla più vecchia"),
    ("la foto più grande", "le foto più grandi"),
    ("the newest file", "the three newest files"),
    ("che ore sono?", "che ore sono a Lima?"),
    ("foto di Anna", "foto di Marta"),
    ("show my photos", "show Tom my photos"),
    ("events with a place", "events without a place"),
    ("sposta le foto dal telefono al disco", "sposta le foto dal disco al telefono"),
    ("unread mail", "read mail"),
    ("annulla", "annulla tutto"),
    ("undo", "don't undo"),
    ("riassumi la posta non letta", 'che vuol dire "riassumi la posta non letta"?'),
    ("dal più leggero al più pesante: i processi", "dal più pesante al più leggero: i processi"),
    ("mostra una foto", "mostra le foto"),
    ("file in Documents", "file in Pictures"),
    ("find the red folder", "find the blue folder"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_same_wish_in_other_words_has_the_same_meaning(one: str, other: str):
    assert meaning_of(one).key
    assert meaning_of(one).key == meaning_of(other).key


@pytest.mark.parametrize(("one", "other"), OTHER)
def test_near_miss_has_another_meaning(one: str, other: str):
    assert meaning_of(one).key != meaning_of(other).key


@pytest.mark.parametrize(
    "text", ["posta di oggi", "what's on tomorrow", "eventi di maggio", "free slots this evening"]
)
def test_times_that_move_are_never_compared(text: str):
    assert meaning_of(text).moving
    assert meaning_of(text).key == ""


@pytest.mark.parametrize(
    "text", ["", "ciao", "grazie mille", "!!!", "e poi?", "x" * (MAX_CHARS + 1)]
)
def test_what_asks_for_nothing_has_no_key(text: str):
    assert meaning_of(text).key == ""


def test_values_are_read_with_their_kind_and_role():
    values = meaning_of("sposta a.txt da Foto a /srv/dati, 3 GB al massimo").values

    assert [(value.kind, value.raw) for value in values] == [
        ("path", "a.txt"),
        ("name", "Foto"),
        ("path", "/srv/dati"),
        ("number", "3 GB"),
    ]
    assert values[1].role == "from"


def test_name_of_several_words_is_one_value():
    assert [v.raw for v in meaning_of("che ore sono a New York").values] == ["New York"]


@given(st.text(max_size=200))
def test_reading_never_fails_and_is_stable(text: str):
    meaning = meaning_of(text)

    assert meaning == meaning_of(text)
    assert meaning.wording_with([v.text for v in meaning.values]) is not None
    assert len([word for word in meaning.words if word is None]) == len(meaning.values)


@given(
    st.sampled_from([a for a, _ in SAME]), st.sampled_from(["ZXQ", "zxqw", "12", "a@b.example"])
)
def test_a_value_that_is_added_changes_the_meaning(text: str, added: str):
    assert meaning_of(f"{text} {added}").key != meaning_of(text).key
