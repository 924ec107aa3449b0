"""What a person's text names besides files: times, lengths of time, people and things, addresses.

Candidates for a plan's typed arguments, Italian and English. Pure. Finds and decides nothing: what
a time means is read where it is used, and a name is whatever may be one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from core.catalog.lexicon import STOP_WORDS, load_lexicon, stem
from core.execution.values import fold
from core.levels.amounts import NOT_A_NAME
from core.levels.number_words import number_of

MOST_NAMES = 8


@dataclass(frozen=True, slots=True)
class Mentions:
    """In the order of the text. `times` are whole phrases ("next week", "dal 3 al 7 aprile"),
    `minutes` lengths of time, `names` of people, firms and things, `addresses` of streets, `mails`
    addresses of mail."""

    times: tuple[str, ...] = ()
    minutes: tuple[int, ...] = ()
    names: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    mails: tuple[str, ...] = ()


_DAY = (
    "oggi|domani|dopodomani|ieri|stasera|stamattina|stamani|stanotte|today|tonight|tomorrow"
    "|yesterday"
)
_WEEKDAY = (
    "luned[iì]|marted[iì]|mercoled[iì]|gioved[iì]|venerd[iì]|sabato|domenica"
    "|(?:mon|tues|wednes|thurs|fri|satur|sun)days?"
)
_MONTH = (
    "gennaio|febbraio|marzo|aprile|maggio|giugno|luglio|agosto|settembre|ottobre|novembre|dicembre"
    "|january|february|march|april|may|june|july|august|september|october|november|december"
)
_UNIT = (
    "or[ae]|giorn[oi]|settiman[ae]|mes[ei]|ann[oi]|week-?end|fine\\s+settimana|mattin[ao]|pomeriggio"
    "|sera|serata|hours?|days?|weeks?|fortnight|months?|years?|morning|afternoon|evening"
)
_NEAR = (
    "quest[oaie]|quest'|prossim[oaie]|scors[oaie]|ultim[oaie]|passat[oaie]|corrente|this|next|last"
    "|past|coming|previous|current"
)
_PART = "mattina|pomeriggio|sera|morning|afternoon|evening|night"
_NUMBER = (
    "\\d{1,3}|due|tre|quattro|cinque|sei|sette|otto|nove|dieci|two|three|four|five|six|seven|eight"
    "|nine|ten|couple\\s+of|few|paio\\s+di"
)
_DATE = (
    rf"(?:\d{{4}}-\d\d-\d\d|\d{{1,2}}[/.]\d{{1,2}}(?:[/.]\d{{2,4}})?"
    rf"|\d{{1,2}}[°º]?\s+(?:of\s+)?(?:{_MONTH})(?:\s+\d{{4}})?"
    rf"|(?:{_MONTH})\s+\d{{1,2}}(?:st|nd|rd|th)?(?:,?\s+\d{{4}})?|(?:{_MONTH})(?:\s+\d{{4}})?)"
)
_POINT = rf"(?:{_DATE}|(?:{_DAY})|(?:{_WEEKDAY})|\d{{1,2}})"
_TIME = re.compile(
    rf"""(?ix) (?<![\w/.-]) (?:
      (?: dal?l?'?|from|between|tra|fra )\s+ (?:il\s+|the\s+)? {_POINT}
        \s+ (?:al?|to|until|and|e|-)\s+ (?:il\s+|the\s+)? {_DATE}
    | (?: dal?|dall'|since )\s* {_POINT} (?:\s+scors[oa]|\s+last)?
    | (?:{_DAY}) (?:\s+(?:{_PART}))?
    | (?:{_NEAR})\s* (?:(?:{_NUMBER})\s+)? (?:{_UNIT}|{_WEEKDAY}|{_MONTH}) (?:\s+(?:{_PART}))?
    | (?:{_UNIT}|{_WEEKDAY}|{_MONTH})\s+ (?:{_NEAR})
    | (?:{_WEEKDAY}) (?:\s+(?:{_PART}|{_DATE}|\d{{1,2}}(?!\d*[:.]\d)))?
    | (?:{_NEAR})\s+ (?:{_NUMBER})\s+ (?:{_UNIT})
    | (?: week-?end | fine\s+settimana )
    | {_DATE}
    ) (?![\w/]|[-.]\w)""",
)
_FRONT = re.compile(r"(?i)^(?:in\s+the|in|nel(?:la|l')?|nei|negli|over\s+the|per\s+i|il|the)\s+")
_HALF = r"(?:\s+e\s+(?:mezz[ao]|un\s+quarto)|\s+and\s+a\s+half)?"
_LENGTH = re.compile(
    rf"""(?ix) \b (?:
      (?P<half>mezz'?\s*ora|half\s+(?:an\s+)?hour)
    | (?P<quarter>quarto\s+d'ora|quarter\s+of\s+an\s+hour)
    | (?P<count>\d{{1,3}}(?:[.,]5)?|un'|un'?\s|una\s|an?\s|one\s|{_NUMBER})\s*-?\s*
      (?:free\s+|spare\s+|whole\s+|full\s+)?
      (?P<unit>or[ae]|hours?|hrs?|h|minut[oi]|minutes?|mins?|min)
      (?P<more>{_HALF})
    ) \b"""
)
_MAIL = re.compile(r"(?<![\w.+-])[\w.+-]+@(?:[\w-]+\.)+[a-z]{2,}(?![\w-])", re.IGNORECASE)
_STREET = re.compile(
    r"""(?x) \b(?:
      (?i:via|viale|vicolo|piazza|piazzale|corso|largo|lungomare|strada|contrada)\s+
        (?:(?:d(?:i|el|ella|ei|egli|ell')|S\.|San|Santa)\s*)?
        [A-ZÀ-Ý0-9][\w'’]* (?:\s+[A-ZÀ-Ý][\w'’]*)*
        (?:,?\s+\d{1,4}(?:/?[a-zA-Z])?\b)? (?:,?\s+(?:a\s+)?[A-ZÀ-Ý][\w'’]+)*
    | \d{1,4}\s+(?:[A-Z][\w'’]*\s+){1,3}
        (?i:street|st|road|rd|avenue|ave|lane|drive|square|way|close|terrace|place|gardens|crescent)\b
        (?:,?\s+[A-Z][\w'’]+)*
    )"""
)
_WORD = re.compile(r"[^\W_][\w-]*")
_LEADS = frozenset(
    """di da dal dalla dallo dai dagli dalle dall del della dello dei degli delle dell d con su
    per il lo la l i gli le un una uno mio mia miei mie from by of about with for the a an my our
    to and e ed""".split()
)
# Nouns that say what is asked for, not of whom or about what.
_KINDS = frozenset(
    map(
        stem,
        """mail email posta messaggio messaggi message messages inbox lettera calendario calendar
        agenda diary evento eventi event events appuntamento appuntamenti appointment impegno
        impegni meeting contatto contatti contact contacts rubrica numero number telefono phone
        indirizzo address file files documento documenti document cartella folder lista elenco
        list foglio spreadsheet riassunto summary riga righe colonna column totale total media
        average importo importi costo spesa nuova nuove nuovi new unread lette letta
        letti""".split(),
    )
)


def find_mentions(text: str) -> Mentions:
    """All candidates of one text; of very long ones only the first 8000 characters are read."""
    text = text[:8000]
    times = [_FRONT.sub("", match[0].strip()) for match in _TIME.finditer(text)]
    mails = [match[0] for match in _MAIL.finditer(text)]
    rest = _TIME.sub(lambda match: "\x00" * len(match[0]), text)
    addresses = [match[0].strip() for match in _STREET.finditer(text)]
    rest = _LENGTH.sub(lambda match: "\x00" * len(match[0]), rest)
    rest = re.sub(r"\S*[@/\\]\S*|\S+\.\w{2,5}\b", lambda match: "\x00" * len(match[0]), rest)
    return Mentions(
        tuple(dict.fromkeys(times)),
        tuple(dict.fromkeys(_minutes(text))),
        tuple(dict.fromkeys(_names(rest)))[:MOST_NAMES],
        tuple(dict.fromkeys(addresses)),
        tuple(dict.fromkeys(mails)),
    )


def _minutes(text: str) -> Iterator[int]:
    """Lengths of time in minutes; what bounds a period (`the last 2 hours`) is one as well."""
    for match in _LENGTH.finditer(text):
        if match["half"]:
            yield 30
        elif match["quarter"]:
            yield 15
        else:
            said = fold(match["count"].strip().rstrip("'")).replace(",", ".")
            one = said in {"un", "una", "a", "an", "one"}
            count = 1.0 if one else float(said) if said[0].isdigit() else float(_counted(said))
            hours = fold(match["unit"])[0] in "oh"
            more = 0.0
            if match["more"]:
                more = 0.25 if "quarto" in match["more"].lower() else 0.5
            minutes = (count + more) * (60 if hours else 1)
            if minutes >= 1:
                yield round(minutes)


def _counted(word: str) -> int:
    if word.startswith(("couple", "paio")):
        return 2
    return number_of(word) or (3 if word == "few" else 1)


def _names(text: str) -> Iterator[str]:
    """Words with a capital inside a sentence, with those that follow; else what stands behind an
    article or a preposition, a word or two."""
    words = [(m[0], m.start()) for m in _WORD.finditer(text)]
    at = 0
    while at < len(words):
        run = _run(text, words, at)
        if run:
            yield from _forms(run)
        at += max(1, len(run))


def _run(text: str, words: list[tuple[str, int]], at: int) -> list[str]:
    word, start = words[at]
    begins = at == 0 or re.search(r"[.!?\n]\s*$", text[:start]) is not None
    capital = word[0].isupper() and not begins
    led = at > 0 and fold(words[at - 1][0]) in _LEADS and _joins(text, words, at - 1)
    if not _may_name(word) or not (capital or led):
        return []
    run = [word]
    for there in range(at + 1, min(at + 4, len(words))):
        following = words[there][0]
        if not _joins(text, words, there - 1) or not _may_name(following):
            break
        if capital and not following[0].isupper():
            break
        run.append(following)
    return run


def _joins(text: str, words: list[tuple[str, int]], at: int) -> bool:
    """Whether only a blank or an apostrophe stands between this word and the next."""
    end, start = words[at][1] + len(words[at][0]), words[at + 1][1]
    return text[end:start] in {" ", "'", "’"}


def _may_name(word: str) -> bool:
    folded = fold(word)
    if word[0].isupper() and not word.islower() and folded not in STOP_WORDS:
        return not word[0].isdigit()
    return (
        len(word) > 2
        and word[0].isalpha()
        and folded not in STOP_WORDS
        and folded not in NOT_A_NAME
        and stem(folded) not in _KINDS
        and not load_lexicon().is_verb(stem(folded))
    )


def _forms(run: list[str]) -> Iterator[str]:
    """A run of words as it stands, and its first word where only it may be meant."""
    yield " ".join(run)
    if len(run) > 1 and not run[0][0].isupper():
        yield run[0]
