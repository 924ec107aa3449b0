"""The words, phrases and values of a request, one after the other. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from core.catalog.lexicon import fold
from core.levels.meaning_words import MeaningWords, Phrase, as_it_stands, load_words, spelt

_QUOTED = re.compile(
    r"[\"“”„«»]\s*([^\"“”„«»]{1,400}?)\s*[\"“”„«»]|(?<!\w)['‘’]([^'‘’]{2,400})['‘’](?!\w)"
)
_TOKEN = re.compile(
    r"""(?ix)
      (?P<url> https?://[^\s<>"'«»“”]+ | www\.[^\s<>"'«»“”]+ )
    | (?P<mail> [\w.+-]+@[\w-]+(?:\.[\w-]+)+ )
    | (?P<path> ~?(?:\.{0,2}/[\w.~+-]*)+ | [\w.+-]+(?:/[\w.+-]+)+/?
        | [\w*+-][\w.*+-]*\.[a-z][a-z0-9]{1,4}\b )
    | (?P<number> [+-]?\d[\d.,:]* [%°€$]? (?:[a-z]{1,3}\b)? | [\w-]*\d[\w-]* )
    | (?P<mark> [#@]\w+ )
    | (?P<word> [^\W\d_]+ )
    """
)  # fmt: skip

# What is said last and takes back what was said before: `delete the file, no wait`.
_TAKEN_BACK = re.compile(
    r"""(?x) \b (?: no | wait | hold\ on | hang\ on | aspetta | never\ ?mind | forget\ it
      | just\ kidding | scherz(?:o|avo) | my\ mistake | errore\ mio | lascia\ (?:stare|perdere)
      | (?:ho|mi\ sono)\ sbagliat[oa] | ho\ cambiato\ idea | i\ made\ a\ mistake
      | that(?:\ was|\W?s)\ (?:wrong|a\ mistake) ) [\s.!)…]* $"""
)


@dataclass(frozen=True, slots=True)
class Piece:
    """`kind` is one of the word list, or of a value; `said` the words, after the one before."""

    kind: str
    name: str
    raw: str
    said: tuple[str, ...] = ()
    lang: str = ""


@dataclass(frozen=True, slots=True)
class _Word:
    text: str
    raw: str
    opens: bool
    """First of a sentence, so that a capital says nothing."""
    stops: bool = False
    """Something stops after it: `no, …`."""
    ends: bool = False
    """Last of the request."""


def pieces(text: str) -> Iterator[Piece]:
    """A request piece by piece; nothing of it is lost but signs. Never raises."""
    words = load_words()
    if _TAKEN_BACK.search(fold(text)):
        yield Piece("trait", "taken_back", "", ("taken_back",))
    at = 0
    for quote in _QUOTED.finditer(text):
        yield from _plain(text, at, quote.start(), words)
        inside = (quote[1] or quote[2]).strip()
        yield Piece("quoted", fold(inside), inside)
        at = quote.end()
    yield from _plain(text, at, len(text), words)


def _plain(text: str, start: int, end: int, words: MeaningWords) -> Iterator[Piece]:
    run: list[_Word] = []
    last = len(text.rstrip(" \n\t.?!…"))
    for match in _TOKEN.finditer(text, start, end):
        raw = match[0]
        if match.lastgroup == "word":
            before = text[: match.start()].rstrip(" \t\n'’(-")
            opens = not before or before[-1] in ".?!:;…\n"
            stops = text[match.end() : match.end() + 1] in {",", "!", ".", ";", ":"}
            run.append(_Word(_spelt(raw, words), raw, opens, stops, match.end() == last))
            continue
        yield from _phrases(run, words)
        run = []
        raw = raw.rstrip(".,:;!?)")
        kind = "name" if match.lastgroup == "mark" else match.lastgroup or "word"
        yield Piece(kind, fold(raw), raw)
    yield from _phrases(run, words)


def _spelt(raw: str, words: MeaningWords) -> str:
    """The word as it is listed; another joined pronoun is no slip (`ricordaci`)."""
    word = fold(raw)
    found = spelt(word, raw, words)
    other = found != word and found[:-2] == word[:-2] and _JOINED.issuperset({word[-2:]})
    to_them = _TO_THEM.fullmatch(word)
    if to_them is not None and to_them["whom"] != "le" and _is_asked(to_them["verb"], words):
        return word
    return word if other else found


_JOINED = frozenset("mi ti ci vi si lo la li le ne".split())


def _phrases(run: Sequence[_Word], words: MeaningWords) -> Iterator[Piece]:
    texts = [word.text for word in run]
    at = 0
    while at < len(run):
        if _is_letter_verb(run, at):
            by = {"text": "by:message", "contact": "by:contact"}.get(texts[at], f"by:{texts[at]}")
            by = "by:mail" if by == "by:email" else by
            yield Piece("trait", by, "", (by,), "en")
            yield Piece("action", "send", run[at].raw, tuple(texts[max(0, at - 1) : at + 1]), "en")
            at += 1
            continue
        if (whom := _whom(texts, at)) is not None:
            yield Piece("trait", whom, "", (whom,))
        if (size := _apart(texts, at)) > 0:
            # `turn the notifications off`
            deed = "disable" if texts[at + size] == "off" else "enable"
            yield Piece("action", deed, run[at].raw, (texts[at],), "en")
            texts[at + size], texts[at] = "the", "the"
        elif _is_called(run, at):
            texts[at] = "oh"
        if _is_bare(texts, at, words):
            yield Piece("trait", "bare", "", ("bare",))
        if texts[at] == "a" and run[at].ends and at:
            yield Piece("word", "a", run[at].raw)  # `folder a`
            return
        if run[at].raw.lower() in {"là", "lì"}:
            yield Piece("trait", "there", run[at].raw, ("",))
            at += 1
            continue
        phrase = words.at(texts, at)
        size = 1 if phrase is None else len(phrase.words)
        said = tuple(texts[max(0, at - 1) : at + size])
        raw = " ".join(word.raw for word in run[at : at + size])
        if phrase is None or (size == 1 and _is_named(run[at], phrase)):
            named = run[at].raw[:1].isupper() and not run[at].opens
            yield Piece("name" if named else "word", texts[at], raw, said)
        else:
            kind, name = as_it_stands(phrase, said)
            if kind == "action" and said[0] in _MENTIONS and len(said) > 1:
                kind, name = "word", texts[at]  # `the word delete` asks for nothing
            elif texts[at] == "open" and run[at].ends and texts[0] in {"is", "are"}:
                kind, name = "trait", "open"
            yield Piece(kind, name, raw, said, phrase.lang)
        at += size


_MENTIONS = frozenset(
    """parola word chiamato chiamata chiamati named called titled intitolato intitolata denominata
    denominato""".split()
)
_ARTICLES = frozenset("il lo la l i gli le un una uno the my a an your this that some all".split())
_TELLS = re.compile(
    r"(?:mostra|leggi|manda|invia|inoltra|scrivi|spedisci|racconta|ricorda|comunica|di|da|elenca"
    r"|gira|rispondi|passa|traduci|riassumi)(?P<whom>gli|glie(?:lo|la|li|le|ne)|le|ci)"
)
_TO_THEM = re.compile(r"(?P<verb>\w{2,}[aeir])(?P<whom>gli|glie(?:lo|la|li|le|ne)|le)")
_TO_US = frozenset({"mostraci", "dacci", "dicci", "leggici", "elencaci"})


def _is_asked(word: str, words: MeaningWords) -> bool:
    """Whether a word is a verb in which something is asked for."""
    phrase = words.at([word], 0)
    return phrase is not None and phrase.kind in {"action", "little", "aside"}


def _whom(texts: Sequence[str], at: int) -> str | None:
    """To whom, where that is part of a word or stands before what: `leggile la nota`."""
    word, after = texts[at], texts[at + 1] if at + 1 < len(texts) else ""
    before = texts[at - 1] if at else ""
    if word == "them" and (after in _ARTICLES or before in {"remind", "tell", "ask"}):
        return "to_them"
    if (match := _TELLS.fullmatch(word)) is None or word in _TO_US:
        joined = _TO_THEM.fullmatch(word)
        if joined is None or (joined["whom"] == "le" and after not in _ARTICLES):
            return None
        return f"to_{joined['whom'][:3]}" if _is_asked(joined["verb"], load_words()) else None
    if match["whom"] == "le" and after not in _ARTICLES:
        return None  # `mandale`: them
    return f"to_{match['whom'][:3]}"


_CALLED = frozenset(
    """capo fratello socio tesoro amico bello caro cara zio friend pal love man bro dude sir
    darling dear mate buddy sweetheart no""".split()
)


def _is_called(run: Sequence[_Word], at: int) -> bool:
    """`mate, what time is it?`: who is spoken to, between commas; and a `no` that only begins."""
    if run[at].text not in _CALLED or not (at == 0 or run[at - 1].stops):
        return False
    return run[at].stops or (at + 1 == len(run) and at > 0)


_EITHER = frozenset(
    """open read empty duplicate free complete clean clear close zip backup archive download save
    update share call play forward copy record filter print book post""".split()
)
_BOUND = _ARTICLES | frozenset("these those any every each our his her its their".split())


def _is_bare(texts: Sequence[str], at: int, words: MeaningWords) -> bool:
    """`open files`: which ones, or what to do. With `the` between there is no doubt."""
    if at or texts[0] not in _EITHER or len(texts) < 2 or texts[1] in _BOUND:
        return False
    deed, phrase = words.at(texts, 0), words.at(texts, 1)
    return (
        deed is not None
        and deed.kind == "action"
        and len(deed.words) == 1
        and phrase is not None
        and phrase.kind in {"thing", "trait", "degree"}
    )


def _apart(texts: Sequence[str], at: int) -> int:
    """How far the rest of a verb of two words is from its beginning; 0 when it is none."""
    if texts[at] not in {"turn", "switch", "turning", "switching"}:
        return 0
    for far in range(2, min(6, len(texts) - at)):
        last = at + far + 1 == len(texts) or texts[at + far + 1] in {"please", "again", "for"}
        if texts[at + far] == "off" or (texts[at + far] == "on" and last):
            return far
    return 0


_TO_WHOM = frozenset("me him her us them it the my this that these those a an everyone".split())


def _is_letter_verb(run: Sequence[_Word], at: int) -> bool:
    """`email her the list`: a noun that opens an order is what is done."""
    if run[at].text not in {
        "email",
        "text",
        "message",
        "mail",
        "contact",
        "invite",
    } or at + 1 == len(run):
        return False
    opens = at == 0 or run[at - 1].text in {"please", "and", "to", "then", "just", "you", "not"}
    return opens and (run[at + 1].text in _TO_WHOM or run[at + 1].raw[:1].isupper())


_LETTERS = frozenset("ABCDEFGHJKLMNOPQRSTUVWXYZ")
_BRANDS = frozenset("telegram excel internet windows linux gmail outlook".split())


def _is_named(word: _Word, phrase: Phrase) -> bool:
    """Whether a capital inside a sentence makes a common word a name (`in Documents`)."""
    if len(word.raw) == 1 and word.raw in _LETTERS and not word.opens:
        return True  # `from A to Z`
    kinds = {"thing", "trait", "degree", "action"}
    if phrase.name == "words" and not word.text.startswith("i"):
        kinds.add("little")  # `remind Ed`
    if phrase.name in {"mine", "yours"}:
        kinds.add("aside")  # `photos of Mia`
    return (
        phrase.kind in kinds
        and not word.opens
        and word.raw[:1].isupper()
        and not word.raw.isupper()
        and word.text not in _BRANDS
    )
