"""The pre-filter: words, ranking, how many, evidence and stable blocks."""

from __future__ import annotations

import string
import time
import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.catalog import lexicon
from core.catalog.evidence import Evidence
from core.catalog.lexicon import (
    MAX_TOKENS,
    STOP_WORDS,
    load_lexicon,
    request_tokens,
    stem,
    tokens,
    without_pronoun,
)
from core.catalog.manifest import parse_manifest
from core.catalog.prefilter import (
    Item,
    PrefilterIndex,
    Ranked,
    RankItem,
    adaptive_k,
    choose,
    rank,
    stable_block,
)
from core.vocabulary import OBJECTS, QUALIFIERS, VERBS


def _item(name: str, italian: str, english: str, **links: tuple[str, ...]) -> Item:
    return Item(
        name,
        {"it": italian, "en": english},
        {"it": tuple(italian.lower().split()[:3]), "en": tuple(english.lower().split()[:3])},
        **links,
    )


CATALOG = (
    _item("get_now", "Data e ora in un luogo", "Date and time at a place"),
    _item("get_location", "Dove sei adesso", "Where you are", producer_for=("find_places",)),
    _item("find_files", "Cerca file per nome", "Find files by name"),
    _item("read_files", "Legge il testo di file", "Read the text of files"),
    _item("write_files", "Scrive testo in un file", "Write text to a file"),
    _item("move_files", "Sposta o rinomina file", "Move or rename files"),
    _item("delete_files", "Mette file nel cestino", "Put files into the trash"),
    _item("compress_files", "Fa un archivio di file", "Make an archive of files"),
    _item("list_dirs", "Elenca una cartella", "List a folder"),
    _item("create_dirs", "Crea cartelle", "Create folders"),
    _item("get_urls", "Scarica un indirizzo web", "Download a web address"),
    _item("read_urls_html", "Legge una pagina web", "Read a web page"),
    _item("find_urls", "Cerca sul web", "Search the web"),
    _item("filter_entries", "Filtra un elenco", "Filter a list"),
    _item("sort_entries", "Ordina un elenco", "Sort a list"),
    _item("compute_entries", "Calcola somme e medie", "Compute sums and means"),
    _item("read_messages", "Legge la posta", "Read mail"),
    _item("send_messages", "Manda un messaggio", "Send a message"),
    _item("read_events", "Legge il calendario", "Read the calendar"),
    _item("create_events", "Crea un appuntamento", "Create an appointment"),
    _item("delete_events", "Cancella un appuntamento", "Delete an appointment"),
    _item("find_events_empty", "Trova tempo libero", "Find free time"),
    _item("find_contacts", "Cerca in rubrica", "Search the address book"),
    _item("find_places", "Cerca luoghi vicini", "Search places nearby"),
    _item("get_processes", "Stato della macchina", "Health of the machine"),
    _item("create_tasks", "Programma un'attività", "Schedule a task"),
    _item("list_tasks", "Elenca le attività", "List the tasks"),
    _item("delete_tasks", "Cancella un'attività", "Delete a task"),
    _item("find_images_indices", "Cerca fra le foto", "Search the photos"),
    _item("set_credentials", "Salva una password", "Store a password"),
    _item("find_issues_github", "Cerca segnalazioni", "Search issues"),
    _item("undo_last_turn", "Annulla l'ultimo turno", "Undo the last turn"),
    _item("zorble_quux", "Zorbla il quux", "Zorble the quux"),
)

REQUESTS = (
    ("che ore sono a Tokyo?", "get_now"),
    ("what time is it in Oslo", "get_now"),
    ("where am I right now", "get_location"),
    ("trova tutti i pdf di marzo", "find_files"),
    ("look for the lease contract file", "find_files"),
    ("leggimi elenco.txt", "read_files"),
    ("show me what is written in todo.md", "read_files"),
    ("salva questa ricetta in pane.txt", "write_files"),
    ("write a note called ideas.md", "write_files"),
    ("spostali nella cartella Archivio", "move_files"),
    ("rename report.txt to old.txt", "move_files"),
    ("sposta le foto in Vacanze", "move_files"),
    ("elimina il file vecchio.log", "delete_files"),
    ("get rid of the temporary files", "delete_files"),
    ("cancellali tutti, quei file", "delete_files"),
    ("zip these documents", "compress_files"),
    ("che cosa c'è nella cartella Scaricati?", "list_dirs"),
    ("what is in my Downloads folder?", "list_dirs"),
    ("crea una cartella per le bollette", "create_dirs"),
    ("scarica https://example.org/dati.json", "get_urls"),
    ("riassumi l'articolo https://example.org/a", "read_urls_html"),
    ("cerca su internet notizie su Siena", "find_urls"),
    ("who won the race in 1998?", "find_urls"),
    ("tieni solo quelli più grandi di 5 MB", "filter_entries"),
    ("sort the results by date", "sort_entries"),
    ("calcola la somma degli importi", "compute_entries"),
    ("c'è posta da Giulia?", "read_messages"),
    ("any unread emails?", "read_messages"),
    ("avvisa Paolo che arrivo tardi", "send_messages"),
    ("send an email to the plumber", "send_messages"),
    ("che impegni ho domani?", "read_events"),
    ("what's on my calendar on Tuesday", "read_events"),
    ("fissa una riunione alle ore 15", "create_events"),
    ("cancel tomorrow's meeting", "delete_events"),
    ("quando sono libero giovedì?", "find_events_empty"),
    ("qual è il numero di telefono di Luca?", "find_contacts"),
    ("una farmacia qui vicino", "find_places"),
    ("is there a bakery near me", "find_places"),
    ("quanta memoria usa il server?", "get_processes"),
    ("ricordami ogni lunedì di annaffiare", "create_tasks"),
    ("remind me to call Ada", "create_tasks"),
    ("quali promemoria ci sono?", "list_tasks"),
    ("togli il promemoria delle piante", "delete_tasks"),
    ("foto al mare con il cane", "find_images_indices"),
    ("salva la password della posta", "set_credentials"),
    ("bug aperti nel repository acme/web", "find_issues_github"),
    ("undo what you just did", "undo_last_turn"),
    ("zorbla il quux", "zorble_quux"),
)


@pytest.fixture(scope="module")
def index() -> PrefilterIndex:
    return PrefilterIndex(CATALOG)


# -- words ------------------------------------------------------------------------------------


def test_tokens_fold_case_accents_and_compatibility_forms():
    assert tokens("Città, PERCHÉ? ﬁle nº2") == ["citta", "perche", "file", "no2"]


@pytest.mark.parametrize("text", ["", "   ", "🙂🙂", "\x00\u202e", "\ud800", "漢字"])
def test_tokens_of_text_without_letters_we_know_are_none(text):
    assert tokens(text) == []


def test_tokens_of_a_huge_text_are_bounded_and_quick():
    begin = time.process_time()
    for text in (
        "a" * 1_000_000,
        "ab " * 500_000,
        "a.b/" * 300_000,
        "x@" * 500_000,
        "~/" * 99_999,
    ):
        assert len(request_tokens(text)) <= MAX_TOKENS

    assert time.process_time() - begin < 10


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("leggi https://example.org/x/y.pdf", ["leggi", "xurl", "pdf"]),
        ("leggi https://salute.example/x", ["leggi", "xurl"]),
        ("novità di https://example.org/blog/feed.xml", ["novita", "di", "xurl", "feed"]),
        ("apri https://github.com/x/y", ["apri", "xurl", "github"]),
        ("cosa c'è a 45.123, -9.456?", ["cosa", "c", "e", "a", "xcoords"]),
        ("costa 3.50, poi 4.20", ["costa", "3", "50", "poi", "4", "20"]),
        ("apri todo.md", ["apri", "xfile", "md"]),
        ("apri ~/note/lista spesa.txt", ["apri", "xpath", "xfile", "txt"]),
        ("scrivi a ada@example.org", ["scrivi", "a", "xaddress"]),
        ("elenca /srv/dati", ["elenca", "xpath"]),
        ("costa 3.50 euro", ["costa", "3", "50", "euro"]),
        ("e/o", ["e", "o"]),
    ],
)
def test_request_tokens_mark_names_of_things(text, found):
    assert request_tokens(text) == found


def test_words_with_a_meaning_share_no_stem_with_words_without_one():
    folder = Path(lexicon.__file__).parent / "words"
    said = {
        word
        for path in folder.glob("*.toml")
        for lists in tomllib.loads(path.read_text("utf-8")).values()
        for key in ("it", "en", "weak")
        for word in lists.get(key, "").split()
        if "_" not in word
    }
    little = {stem(word) for word in STOP_WORDS}

    found = {word for word in said - STOP_WORDS if stem(word) in little}

    # Worth it: what stands beside them decides.
    assert found == {"quanta", "quante", "nota", "note", "notes", "here", "cane"}


@pytest.mark.parametrize("text", ["raccontami del gatto e della stufa", "thanks a bunch"])
def test_small_talk_names_no_place(text):
    index = PrefilterIndex([Item("find_places"), Item("get_places"), Item("read_files")])

    points = index.points(index.clauses(text)[0])

    assert all(points.get(number, 0.0) < 10 for number in (0, 1)), points


@pytest.mark.parametrize(
    "forms",
    [
        "cerca cercare cerco cercarlo cercando cercate",
        "elimina eliminare elimino eliminarli eliminato",
        "foto fotos",
        "immagine immagini",
        "cartella cartelle",
        "file files",
        "search searching searched searches",
        "calendario calendari",
    ],
)
def test_stem_joins_regular_forms(forms):
    stems = {stem(form) for form in forms.split()}

    assert len(stems) <= 2
    assert stem(forms.split()[0]) in stems


def test_without_pronoun_finds_the_imperative():
    assert without_pronoun("mandamelo") == stem("manda")
    assert without_pronoun("manda") is None


def test_lexicon_covers_the_whole_vocabulary():
    known = load_lexicon().concepts

    assert known["verb"] >= VERBS
    assert known["object"] >= OBJECTS
    assert known["qualifier"] >= QUALIFIERS


def test_lexicon_phrase_stands_for_its_words():
    words = tokens("apri il foglio di calcolo")

    senses = load_lexicon().senses(words, [stem(w) for w in words], related=0.0, implied=0.0)

    assert senses.qualifiers["spreadsheet"] == 1.0
    assert "compute" not in senses.verbs


# -- ranking ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("request_text", "tool"), REQUESTS, ids=[r for r, _ in REQUESTS])
def test_rank_offers_the_tool_among_the_first_five(index, request_text, tool):
    assert tool in choose(request_text, index)[:5]


def test_rank_puts_most_tools_first(index):
    first = [choose(text, index)[0] == tool for text, tool in REQUESTS]

    assert sum(first) / len(first) >= 0.75


@pytest.mark.parametrize(
    ("request_text", "tool"),
    [("ceraca i documenti", "find_files"), ("spsota il flie", "move_files"),
     ("cancela il file", "delete_files"), ("che apuntamenti ho", "read_events")],
)  # fmt: skip
def test_rank_forgives_a_slip_of_the_pen(index, request_text, tool):
    assert tool in choose(request_text, index)[:5]


def test_rank_is_the_same_for_every_order_of_the_catalogue():
    query = "leggi i file e mandali a Rita"

    assert rank(query, CATALOG) == rank(query, CATALOG[::-1])


def test_rank_scores_are_whole_and_falling(index):
    ranked = rank("trova i file pdf e spostali", index)

    assert all(isinstance(item.score, int) for item in ranked)
    assert ranked == sorted(ranked, key=lambda item: (-item.score, item.name))


def test_rank_when_nothing_scores_gives_the_catalogue_by_name_up_to_k_max():
    items = [Item(name) for name in ("read_files", "find_files", "get_now")]

    assert rank("🙂", items) == [Ranked(n, 0) for n in ("find_files", "get_now", "read_files")]
    assert [item.name for item in rank("🙂", items, k_max=2)] == ["find_files", "get_now"]


def test_rank_of_an_empty_catalogue_is_empty():
    assert rank("che ore sono", []) == []


def test_rank_equal_scores_go_by_name():
    items = [Item("zeta_b", {"it": "gadget"}), Item("zeta_a", {"it": "gadget"})]

    assert [item.name for item in rank("gadget", items)] == ["zeta_a", "zeta_b"]


def test_rank_affinity_counts_double():
    items = [
        Item("aa_described", {"it": "gadget"}),
        Item("bb_affine", {}, {"it": ("gadget",)}),
    ]

    ranked = rank("gadget", items)

    assert [item.name for item in ranked] == ["bb_affine", "aa_described"]
    assert ranked[0].score == 2 * ranked[1].score


def test_rank_affinity_of_little_words_counts_as_a_whole():
    items = [Item("aa_b", {}, {"en": ("who am i",)}), Item("cc_d", {}, {"en": ("you",)})]

    assert rank("so who am I?", items)[0].name == "aa_b"
    assert rank("am I late", items)[0].score == 0


def test_rank_of_several_clauses_keeps_the_best_of_each(index):
    names = choose("leggi la posta e poi crea una cartella", index, k_min=2, k_max=12)

    assert names[0] == "read_messages"
    assert "create_dirs" in names


def test_rank_of_an_action_with_something_else_offers_its_source(index):
    names = choose("manda a Bruno gli appuntamenti di domani", index)[:5]

    assert {"send_messages", "read_events"} <= set(names)


def test_rank_a_consumer_pulls_its_companions():
    items = [
        Item("find_places", companions=("get_now", "no_such_tool")),
        Item("get_now"),
        Item("get_location", producer_for=("find_places",)),
        *(Item(f"find_places_{q}") for q in ("web", "size", "json", "csv", "pdf")),
    ]

    names = [item.name for item in rank("trova ristoranti", items, k_min=1, k_max=5)]

    assert {"find_places", "get_now", "get_location"} <= set(names)
    assert len(names) == 5


def test_rank_leaves_a_provider_behind_when_it_is_not_named():
    items = [Item("read_messages"), Item("read_messages_github")]

    assert rank("leggi i messaggi", items)[0].name == "read_messages"
    assert rank("leggi i messaggi su github", items)[0].name == "read_messages_github"


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=300), st.integers(1, 6), st.integers(6, 40))
def test_rank_of_any_text_is_bounded_unique_and_repeatable(text, k_min, k_max):
    index = PrefilterIndex(CATALOG[:12])

    names = choose(text, index, k_min=k_min, k_max=k_max)

    assert 1 <= len(names) <= k_max
    assert len(set(names)) == len(names)
    assert names == choose(text, index, k_min=k_min, k_max=k_max)


def test_rank_takes_manifests_as_they_are():
    shipped = Path(__file__).parents[2] / "executors"
    items: list[RankItem] = [
        parse_manifest((shipped / name / "manifest.toml").read_bytes(), folder=name)
        for name in ("get_now", "find_files", "move_files", "list_dirs", "sort_entries")
    ]

    assert rank("che ore sono a Roma?", items)[0].name == "get_now"
    assert rank("rename the old reports", items)[0].name == "move_files"


# -- how many ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        pytest.param([], 0, id="none"),
        pytest.param([9], 1, id="only one scores"),
        pytest.param([100, 30, *[1] * 60], 5, id="clearly ahead"),
        pytest.param([100, 20, *[1] * 60], 5, id="more than clearly"),
        pytest.param([100, 70, *[1] * 60], 40, id="close"),
        pytest.param([100, 100, *[1] * 60], 40, id="equal"),
        pytest.param([100, 50, *[1] * 60], 22, id="half way"),
        pytest.param([100, 90, 80], 3, id="never more than score"),
    ],
)
def test_adaptive_k(scores, expected):
    assert adaptive_k(scores) == expected


# -- evidence ---------------------------------------------------------------------------------


def test_evidence_without_past_has_no_votes():
    assert Evidence().votes("che ore sono") == {}


def test_evidence_prefers_what_served_similar_requests(index):
    evidence = Evidence(
        [("aggiornami sul progetto Alfa", "read_messages"), ("che ore sono", "get_now")] * 2
    )

    assert "read_messages" not in choose("aggiornami sul progetto Beta", index)[:1]
    assert choose("aggiornami sul progetto Beta", index, evidence=evidence)[0] == "read_messages"


def test_evidence_of_a_tool_that_is_gone_is_ignored(index):
    evidence = Evidence([("fai la magia", "vanished_tool")])

    assert "vanished_tool" not in choose("fai la magia", index, evidence=evidence)


def test_evidence_beyond_capacity_forgets_the_oldest():
    evidence = Evidence(capacity=8)

    for number in range(30):
        evidence.add(f"richiesta {number}", f"tool_{number}")

    assert len(evidence) <= 8
    assert "tool_0" not in evidence.votes("richiesta 0")
    assert max(evidence.votes("richiesta 29").items(), key=lambda v: v[1])[0] == "tool_29"


def test_evidence_votes_are_the_same_however_asked():
    pairs = [(f"leggi {letter} oggi", f"tool_{letter}") for letter in string.ascii_lowercase]
    once, twice = Evidence(pairs), Evidence(pairs)
    twice.votes("prima domanda")

    assert once.votes("leggi q domani") == once.votes("leggi q domani")
    assert once.votes("leggi q domani") == twice.votes("leggi q domani")


def test_evidence_of_one_language_counts_in_the_other():
    evidence = Evidence([("cancella le foto", "delete_files"), ("che ore sono", "get_now")])

    votes = evidence.votes("delete the pictures")

    assert max(votes, key=lambda tool: votes[tool]) == "delete_files"


def test_evidence_gives_later_tools_of_a_turn_a_part_of_the_vote():
    evidence = Evidence()
    evidence.add("riassumi la pagina e salvala", "read_urls_html", "write_files")

    votes = evidence.votes("riassumi la pagina e salvala")

    assert votes["read_urls_html"] > votes["write_files"] > 0.3


def test_evidence_learnt_at_once_is_what_is_learnt_one_by_one():
    pairs = [(f"cerca {word} in casa", f"tool_{n % 7}") for n, word in enumerate("abcdefgh" * 6)]
    one_by_one, at_once = Evidence(capacity=40), Evidence(capacity=40)
    for query, tool in pairs[-40:]:
        one_by_one.add(query, tool)
    at_once.learn_all([(at_once.features(query), [tool]) for query, tool in pairs])

    assert len(at_once) == len(one_by_one) == 40
    votes, others = at_once.votes("cerca c"), one_by_one.votes("cerca c")
    assert votes.keys() == others.keys()
    assert max(votes, key=lambda t: votes[t]) == max(others, key=lambda t: others[t])


def test_evidence_holds_salted_numbers_and_no_words():
    mine, theirs = Evidence(salt=b"a"), Evidence(salt=b"b")

    assert mine.features("Anna e Bruno") == mine.features("bruno ANNA")
    assert not mine.features("Anna") & theirs.features("Anna")
    assert mine.features("chi sono") != frozenset(), "little words count where there are no others"
    assert Evidence().features("") == frozenset()


# -- stable blocks ----------------------------------------------------------------------------

ORDER = tuple("abcdefghij")


def test_stable_block_rounds_up_in_catalogue_order():
    assert stable_block(["h", "a"], 3, ORDER) == list("abcghi")


def test_stable_block_gives_neighbours_the_same_list():
    assert stable_block(["a", "b"], 3, ORDER) == stable_block(["c"], 3, ORDER)


def test_stable_block_last_block_may_be_short():
    assert stable_block(["j"], 4, ORDER) == ["i", "j"]


def test_stable_block_within_a_limit_takes_better_candidates_first():
    assert stable_block(["e", "a", "j"], 3, ORDER, limit=7) == list("abcdefj")
    assert stable_block(["e", "a", "j", "g"], 3, ORDER, limit=3) == list("def")


def test_stable_block_ignores_unknown_and_repeated_names():
    assert stable_block(["zz", "a", "a"], 2, ORDER) == ["a", "b"]
    assert stable_block([], 2, ORDER) == []
