"""Contacts: against a real CardDAV server (Radicale), and files of one's own."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from executors._sdk import cards
from executors._sdk.dav_parts import PictureSieve
from tests.executors.file_cases import run, run_caged
from tests.support.dav_server import DavHost, broken_host, dav_host, free_port, pointing_to

PICTURE = base64.b64encode(b"canary-picture" * 4000).decode()
FOLDED = "\r\n ".join(PICTURE[at : at + 74] for at in range(0, len(PICTURE), 74))


def card(name: str, *lines: str) -> str:
    uid = hashlib.sha256(repr((name, lines)).encode()).hexdigest()
    return "\r\n".join(["BEGIN:VCARD", "VERSION:3.0", f"UID:{uid}", f"FN:{name}",
                        f"N:{name};;;;", *lines, "END:VCARD", ""])  # fmt: skip


CARDS = {
    "anna1": card("Anna Rossi", "EMAIL:anna@studio.example", "ORG:Studio;Legale",
                  f"PHOTO;ENCODING=b;TYPE=JPEG:{FOLDED}", "NOTE:dopo la foto"),
    "anna2": card("Anna Rossi", "TEL;TYPE=CELL:+39 333 1112223"),
    "anna3": card("Anna Rossini", "EMAIL:rossini@mail.example"),
    "nico": card("Niccolò D'Àvila", "TITLE:Elettricista", "TEL;TYPE=HOME:02 7654321",
                 "TEL;TYPE=CELL,PREF:+39 340 9998887", "ADR;TYPE=HOME:;;Via Roma 1;Milano;;20100;",
                 "BDAY:1980-05-06", "NOTE:suona due volte\\, poi aspetta"),
    "siobhan": card("Siobhán O'Neill", "EMAIL:sio@mail.example"),
    "maria": card("Maria", "NOTE:amica di Anna"),
}  # fmt: skip


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DavHost]:
    with dav_host(tmp_path_factory.mktemp("dav")) as host:
        host.make("rubrica", "contacts")
        for name, text in CARDS.items():
            host.put(f"rubrica/{name}.vcf", text)
        yield host


def call(host, name, args, **about):
    accounts = about.pop("accounts", [host.account("contacts")])
    return run(name, args, accounts=accounts, **about)


def labels(seen):
    return [entry["label"] for entry in seen["entries"]]


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("Anna Rossi", ["Anna Rossi (+39 333 1112223)", "Anna Rossi (Studio, Legale)"]),
        ("rossi anna", ["Anna Rossi (+39 333 1112223)", "Anna Rossi (Studio, Legale)"]),
        ("anna", ["Anna Rossi (+39 333 1112223)", "Anna Rossi (Studio, Legale)",
                  "Anna Rossini (rossini@mail.example)"]),
        ("NICCOLO d'avila", ["Niccolò D'Àvila (Elettricista)"]),
        ("l'elettricista", ["Niccolò D'Àvila (Elettricista)"]),
        ("Siobhans", ["Siobhán O'Neill (sio@mail.example)"]),
        ("ANNA@studio.example", ["Anna Rossi (Studio, Legale)"]),
        ("@mail.example", ["Anna Rossini (rossini@mail.example)",
                           "Siobhán O'Neill (sio@mail.example)"]),
        ("3409998887", ["Niccolò D'Àvila (Elettricista)"]),
        ("0039 340 999 8887", ["Niccolò D'Àvila (Elettricista)"]),
        ("amica di anna", ["Maria"]),
        ("aspetta", ["Niccolò D'Àvila (Elettricista)"]),
        ("via roma milano", ["Niccolò D'Àvila (Elettricista)"]),
        ("Zenobia", []),
        ("anna bianchi", []),
    ],
)  # fmt: skip
def test_who_is_meant_is_found_and_namesakes_are_told_apart(server, query, wanted):
    seen = call(server, "find_contacts", {"query": query})
    assert labels(seen) == wanted
    assert seen["metadata"]["available"] == len(wanted)


def test_contact_is_read_in_full_and_its_preferred_number_first(server):
    [found] = call(server, "find_contacts", {"query": "niccolò"})["entries"]

    by_id = call(server, "read_contacts", {"ids": [found["id"]]})
    by_phone = call(server, "read_contacts", {"phone": "+39 02 7654321"})
    by_list = call(server, "read_contacts", {"entries": [found]})

    [entry] = by_id["entries"]
    assert by_phone["entries"] == by_list["entries"] == [entry]
    assert entry["phone"] == "+39 340 9998887"
    assert entry["phones"] == "+39 340 9998887, 02 7654321"
    assert entry["place"] == "Via Roma 1, Milano, 20100"
    assert (entry["birthday"], entry["note"]) == ("1980-05-06", "suona due volte, poi aspetta")
    assert (entry["title"], entry["account"]) == ("Elettricista", "Casa")


def test_without_a_query_everybody_is_told(server):
    seen = call(server, "find_contacts", {"max_results": 2})
    assert [entry["name"] for entry in seen["entries"]] == ["Anna Rossi", "Anna Rossi"]
    assert (seen["metadata"]["available"], seen["metadata"]["truncated"]) == (6, True)


def test_one_of_two_is_not_there(server):
    seen = call(server, "read_contacts", {"ids": ["Casa|/nobody.vcf"],
                                          "email": "sio@mail.example"})  # fmt: skip
    assert [entry["ok"] for entry in seen["entries"]] == [False, True]
    alone = call(server, "read_contacts", {"email": "nobody@mail.example"})
    assert alone["error"]["code"] == "not_found"


def test_pictures_are_never_kept(server):
    [entry] = call(server, "read_contacts", {"email": "anna@studio.example"})["entries"]
    assert entry["note"] == "dopo la foto"
    assert PICTURE[:40] not in str(entry)


@pytest.mark.parametrize("piece", [97, 1000, 70_000, 1 << 20])
def test_sieve_drops_pictures_in_whatever_pieces_they_come(piece):
    before, after = b"BEGIN:VCARD\r\nFN:A\r\n", b"item1.TEL:1\r\nEND:VCARD\r\n"
    for picture in (f"PHOTO;ENCODING=b:{FOLDED}\r\n", f"item2.logo:{PICTURE * 3}\r\n", ""):
        data = before + picture.encode() + after
        sieve = PictureSieve()
        kept = b"".join(sieve.feed(data[at : at + piece]) for at in range(0, len(data), piece))
        assert kept + sieve.end() == before + after


def test_wrong_password_no_network_and_no_address_book(server):
    wrong = server.account("contacts", password="falsa")
    away = server.account("contacts", name="Lontano", url=f"http://127.0.0.1:{free_port()}/")
    query = {"query": "niccolò"}

    refused = call(server, "find_contacts", query, accounts=[wrong])
    gone = call(server, "find_contacts", query, accounts=[away])
    both = call(server, "find_contacts", query, accounts=[away, server.account("contacts")])
    with broken_host(PROPFIND=(404, {}, b"")) as (account, _):
        nothing = call(server, "find_contacts", query, accounts=[account])

    assert (refused["error"]["code"], refused["error"]["params"]) == (
        "wrong_credentials", {"name": "Casa"})  # fmt: skip
    assert gone["error"]["code"] == "network"
    assert len(both["entries"]) == 1
    assert both["metadata"]["unreached"] == "Lontano"
    assert nothing["error"]["code"] == "not_found"


def test_file_of_old_and_broken_cards_is_read_as_far_as_it_goes(tmp_path):
    (tmp_path / "Contatti.vcf").write_bytes(
        b"BEGIN:VCARD\r\nVERSION:2.1\r\nN;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:R=C3=BA=\r\n"
        b"sso;Jos=C3=A9\r\nTEL;CELL:333444\r\nEND:VCARD\r\n"
        b"BEGIN:VCARD\r\nEMAIL;;=:rotta@mail.example\r\n:::\r\n;\r\nTEL:\r\nEND:VCARD\r\n"
        b"BEGIN:VCARD\r\nFN:Gruppo Calcetto\r\nX-ADDRESSBOOKSERVER-KIND:group\r\nEND:VCARD\r\n"
        b"BEGIN:VCARD\r\nFN:Caff\xe8 Roma\r\nitem1.TEL:06 1234567\r\nEND:VCARD\r\n"
        b"BEGIN:VCARD\r\nFN:Tagliato"
    )

    def names(query):
        return [e["name"] for e in run("find_contacts", {"query": query}, tmp_path)["entries"]]

    assert names("josé rúsko") == []
    assert names("jose russo") == ["José Rússo"]
    assert names("rotta@mail.example") in (["rotta@mail.example"], [])
    assert names("calcetto") == []
    assert names("roma") == ["Caffè Roma"]
    assert names("061234567") == ["Caffè Roma"]


def test_thousands_of_contacts_in_a_file(tmp_path):
    text = "".join(card(f"Persona Numero{n}", f"EMAIL:p{n}@mail.example") for n in range(8000))
    (tmp_path / "contacts.vcf").write_text(text)

    seen = run("find_contacts", {"query": "persona"}, tmp_path)
    one = run("find_contacts", {"query": "p7999@mail.example"}, tmp_path)

    assert (len(seen["entries"]), seen["metadata"]["available"]) == (20, 8000)
    assert seen["metadata"]["truncated"] is True
    assert [e["name"] for e in one["entries"]] == ["Persona Numero7999"]


def test_address_book_on_the_server_that_was_allowed(server):
    with broken_host(**pointing_to(server.url + "ada/", "contacts")) as (front, _):
        account = {**front, "kind": "contacts"}
        refused = run("find_contacts", {"query": "siobhan"}, accounts=[account])
        home = {**account, "home": server.url}
        found = run("find_contacts", {"query": "siobhan"}, accounts=[home])
        read = run("read_contacts", {"ids": [found["entries"][0]["id"]]}, accounts=[home])

    assert refused["error"]["code"] == "other_server"
    assert labels(found) == ["Siobhán O'Neill (sio@mail.example)"]
    assert read["entries"][0]["name"] == "Siobhán O'Neill"


def test_in_the_cage(server):
    hosts = [f"127.0.0.1:{server.port}"]
    seen = run_caged("find_contacts", {"query": "siobhan"}, accounts=[server.account("contacts")],
                     account_hosts={"contacts": hosts}, private_hosts=hosts)  # fmt: skip
    assert labels(seen) == ["Siobhán O'Neill (sio@mail.example)"]
    assert seen["provenance"] == "external", "what is in a card may be somebody else's words"


_LINES = st.lists(
    st.one_of(
        st.sampled_from(["FN:a", "N:;;;;", "TEL;TYPE=x:1", "EMAIL:", "PHOTO:x", " folded", "ADR:",
                         "FN;ENCODING=QUOTED-PRINTABLE:=ZZ=", "TEL;;:1", "ORG:;", "KIND:group",
                         "NOTE;CHARSET=moon;ENCODING=QUOTED-PRINTABLE:=41"]),
        st.text(max_size=30),
    ),
    max_size=15,
)  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(_LINES, st.text(max_size=12))
def test_no_card_breaks_the_reading(lines, query):
    for block in cards.blocks_of("\r\n".join(["BEGIN:VCARD", *lines, "END:VCARD", ""])):
        card = cards.read_card(block)
        if card is not None and cards.rank_of(card, query) is not None:
            assert card.name
