"""What is said offhand: notes of an event without a verb, questions, and what asks for nothing.

Pure. Goes by the words of two languages alone; where they do not tell, says no.
"""

from __future__ import annotations

import re

from core.catalog.lexicon import load_lexicon, stem, tokens

NOTES_EVENTS, SENDS = "create_events", "send_messages"
PUTS_ON, TAKES_OFF = "write_lists", "delete_lists"
"""The tools that are meant without a word for what they do."""

MOST_WORDS = 12
_HOUR = re.compile(
    r"""(?ix)
    \b(?:alle|all['’]|ore|h)\s*(?:[01]?\d|2[0-4])(?:[:.h][0-5]\d)?\b
    | \bat\s+(?:[01]?\d|2[0-4])(?::[0-5]\d)?\s*(?:am|pm|a\.m\.|p\.m\.|o['’]clock)?(?!\w)
    | \b(?:[01]?\d)(?::[0-5]\d)?\s*(?:am|pm|a\.m\.|p\.m\.|o['’]clock)(?!\w)
    | \b(?:[01]?\d|2[0-3]):[0-5]\d\b
    | \b(?:alle|a)\s+(?:mezzogiorno|mezzanotte|una|due|tre|quattro|cinque|sei|sette|otto|nove
        |dieci|undici|dodici)\b
    | \bat\s+(?:noon|midnight|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)\b
    """
)
_DAY = re.compile(
    r"""(?ix) \b(?:
      oggi|domani|dopodomani|stasera|stamattina|stanotte|luned[iì]|marted[iì]|mercoled[iì]
    | gioved[iì]|venerd[iì]|sabato|domenica
    | today|tonight|tomorrow|monday|tuesday|wednesday|thursday|friday|saturday|sunday
    | \d{1,2}\s*(?:°|º)?\s+(?:gen|feb|mar|apr|mag|giu|lug|ago|set|ott|nov|dic)[a-z]*
    | (?:1st|2nd|3rd|\d{1,2}th)\s+(?:of\s+)?
      (?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*
    | (?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\s+\d{1,2}(?:st|nd|rd|th)?
    | \d{1,2}/\d{1,2}(?:/\d{2,4})?
    )(?!\w)"""
)
_PART = re.compile(r"(?i)\b(?:sera|mattina|mattino|pomeriggio|evening|morning|afternoon|night)\b")
# What stands in a diary, so that a day alone is enough beside it.
_KEPT = frozenset(
    """dentista medico dottore pediatra oculista visita analisi riunione incontro colloquio
        cena pranzo colazione aperitivo compleanno anniversario festa matrimonio volo treno
        lezione palestra yoga piscina calcetto partita concerto teatro cinema parrucchiere
        veterinario scadenza esame call appuntamento meccanico idraulico consegna
        dentist doctor checkup appointment meeting interview dinner lunch breakfast drinks
        birthday anniversary party wedding flight train class lesson gym match game concert
        theatre theater movie haircut hairdresser vet deadline exam plumber delivery""".split()
)
# What is about times and is no note: it asks, tells, or speaks of the past.
_NO_NOTE = frozenset(
    """che chi cosa quando dove quanto quanti quante quale quali come perche se ieri scorso scorsa
    fa io sono siamo sei e era ero ho hai ha abbiamo hanno ci mi ti vi torno arrivo esco vado parto
    sto vengo passo dormo lavoro mangio finisco inizio comincio torniamo arriviamo usciamo andiamo
    partiamo grazie ciao buongiorno impegni agenda calendario eventi libero libera liberi
    what who when where which how why if yesterday last ago i im ill ive we were he she they you
    youre it its is are was am do does did have has had thanks hello hi schedule agenda calendar
    events free busy back appuntamenti riunioni incontri visite voli treni orari biglietti film
    partite appointments meetings flights trains times tickets films movies games""".split()
)
_OPENS = frozenset("mail email e messaggio message sms text whatsapp nota note".split())
_TITLE = re.compile(r"[^\W\d_]{3,}")
_LITTLE = frozenset(
    """alle all ore con del della dal dalla per nel nella the with and for from sera mattina
    mattino pomeriggio evening morning afternoon night clock""".split()
)

_QUESTION = frozenset(
    """che chi cosa quando dove quanto quanti quante quale quali come perche ho hai ci ce
    what who when where which how why any is are do does did have has com""".split()
)
# These open nothing but a question.
_ASKING = _QUESTION - frozenset("ho hai ci ce have has any".split()) | {"am"}
_MODAL = re.compile(
    r"""(?ix) \b(?: puoi | potresti | riesci\ a | mi\ \w+i\b | vuoi | ti\ va\ di
    | can\ you | could\ you | will\ you | would\ you | please )\b"""
)
_WISH = re.compile(
    r"""(?ix) \b(?: vorrei | voglio | devi | dovresti | ho\ bisogno | fammi | dimmi
    | i\ (?:want|need|would\ like) | i['’]d\ like | let\ me | (?:show|tell|give|get)\ me )\b"""
)
_COURTESY = re.compile(
    r"""(?ix) ^\W* (?: (?: ciao | ehi | hey | hi | hello | ok | allora | senti | metnos
    | per\ (?:favore|piacere|cortesia) | please | puoi | potresti | can\ you | could\ you
    | adesso | ora | now | poi | e ) \b \W* )+"""
)
_THANKS = re.compile(r"(?i)\b(?:grazie|thanks|thank you|thx|ricevut[oa] grazie)\b")
_PICKS = re.compile(
    r"""(?ix) \b(?: non\ lett[eoia] | da\ leggere | nuov[eoia] | ultim[eoia] | recenti? | di\ oggi
    | di\ ieri | importanti? | unread | new | latest | last | recent | newest
    | today['’]?s\ \w+ | from\ today | important )\b"""
)
_ORDERS = frozenset("controlla guarda verifica segna check look mark see".split())
_TELLING = frozenset("i we he she they you io ho ti mi sono era is are was were".split())
_MESSAGE_TO = re.compile(
    r"""(?ix) (?: (?:nuov[oa]\ )? (?:messaggi(?:o|no)|mail|e-?mail|sms|risposta)
        \ (?:a|ad|al|allo|alla|all['’]|ai|agli|alle|per)
      | (?:new\ )? (?:message|mail|e-?mail|text|note|reply)\ (?:to|for) ) \b [^:,\n]{1,60} [:,]"""
)
_MAIL_OF = re.compile(
    r"""(?ix) (?:le\ |la\ |the\ )? (?:mail|e-?mails?|messaggi|messages?|posta)\ (?:di|da|del|della
    | dal|dalla|dello|degli|dei|from|of|by|in|about)\b"""
)
_ON_LIST = re.compile(
    r"""(?ix) (?!il\ |la\ |the\ ) [^.?!:]{2,80}\ (?: (?:nella|sulla|alla|in)\ (?:mia\ )?lista\b
      (?:\ (?:della|del|delle|dei|per)\ \w+){0,2}
      | (?:on|onto|to)\ (?:the|my|our)\ (?:\w+\ )?list ) \W* $"""
)
_OFF_LIST = re.compile(
    r"""(?ix) (?: via\ [^.?!]{1,80}\ dalla\ (?:mia\ )?lista\b
      | [^.?!]{1,80}\ (?:via|fuori)\ dalla\ (?:mia\ )?lista\b
      | [^.?!]{1,80}\ off\ (?:of\ )?(?:the|my|our)\ (?:\w+\ )?list\b )"""
)
# Words that name a thing as often as a deed.
_NOUNS = frozenset(
    """posta post mail email message messages messaggio messaggi text note nota lista list new
    nuova nuovo nuove nuovi order ordine copia copy risposta answer invio""".split()
)


def deed_of(request: str) -> str:
    """The tool that a request without a verb is for: a note of an event, a message to somebody
    (`messaggio ad Anna: arrivo`), something on or off a list; "" for any other."""
    if notes_event(request):
        return NOTES_EVENTS
    bare = _COURTESY.sub("", request)
    if _MESSAGE_TO.match(bare):
        return SENDS
    if _OFF_LIST.match(bare):
        return TAKES_OFF
    first = next(iter(tokens(bare[:60])), "")
    names_things = first not in _QUESTION | _NO_NOTE and not _gives_order(first)
    return PUTS_ON if names_things and _ON_LIST.match(bare) else ""


def speaks_of_mail(request: str) -> bool:
    """Whether mail is named as a thing that is there: `email di ieri` sends none."""
    return _MAIL_OF.match(_COURTESY.sub("", request)) is not None


def notes_event(request: str) -> bool:
    """Whether a request is the note of an event and nothing else: `dentist Thursday at 4 pm`.

    A day and an hour beside what it is, or one of them beside a word that stands in diaries. What
    asks, orders, tells or is in the past is none.
    """
    text = request.strip()
    words = tokens(text[:400])
    if not words or len(words) > MOST_WORDS or text.endswith("?") or words[0] in _OPENS:
        return False
    if not _NO_NOTE.isdisjoint(words) or _gives_order(words[0]):
        return False
    hour, day = _HOUR.search(text) is not None, _DAY.search(text) is not None
    part = _PART.search(text) is not None
    rest = _DAY.sub(" ", _HOUR.sub(" ", text))
    title = [word for word in tokens(rest) if _TITLE.fullmatch(word) and word not in _LITTLE]
    if not title:
        return False
    if hour and day:
        return True
    return (hour or day or part) and not _KEPT.isdisjoint(title)


def is_question(request: str) -> bool:
    """Whether a request is only a question: `new mail?`, `what is in a.txt`, not `can you move
    it?`."""
    words = tokens(_COURTESY.sub("", request)[:200])
    opens = bool(words) and words[0] in _ASKING
    asks = opens or request.rstrip().endswith("?")
    return asks and _MODAL.search(request) is None


def asks(request: str) -> bool:
    """Whether a request surely wants something done or told; a mere mention of things does not
    (`message received, thanks`)."""
    if _WISH.search(request) is not None:
        return True
    bare = _COURTESY.sub("", request)
    words = tokens(bare[:400])
    if not words:
        return False
    if _gives_order(words[0]):
        return True
    if _THANKS.search(request) is not None:
        return False
    if request.rstrip().endswith("?") or (words[0] in _QUESTION - {"ho", "che", "hai"}):
        return True
    return _TELLING.isdisjoint(words) and _PICKS.search(bare) is not None


def _gives_order(word: str) -> bool:
    """Whether a first word plainly is a deed: `read`, `leggi`."""
    return word in _ORDERS or (word not in _NOUNS and load_lexicon().is_verb(stem(word)))
