"""Sentences of a model that claim a change nobody made.

A closed list of done-forms per language maps words to verbs; a sentence that uses one of a verb
with no such step is dropped, and the caller says so (C7). Pure. Negations, questions, conditions,
offers and quoted text are no claims. A sentence counts in the language it is written in, since a
model may answer in another one than was asked for.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache

from core.language import guess_lang

# Words of change by the verb of the tool that does it. Participles only: done-forms.
_WORDS: dict[str, dict[str, str]] = {
    "it": {
        "write": r"scritt[oaie]|salvat[oaie]|aggiunt[oaie]|aggiornat[oaie]|modificat[oaie]"
        r"|annotat[oaie]|registrat[oaie]|sovrascritt[oaie]|memorizzat[oaie]",
        "create": r"creat[oaie]|generat[oaie]|prenotat[oaie]|fissat[oaie]",
        "move": r"spostat[oaie]|rinominat[oaie]|archiviat[oaie]|trasferit[oaie]|copiat[oaie]",
        "delete": r"eliminat[oaie]|cancellat[oaie]|rimoss[oaie]|cestinat[oaie]|svuotat[oaie]"
        r"|buttat[oaie]|gettat[oaie]",
        "send": r"inviat[oaie]|mandat[oaie]|spedit[oaie]|inoltrat[oaie]|avvisat[oaie]"
        r"|avvertit[oaie]|pubblicat[oaie]",
        "set": r"impostat[oaie]|attivat[oaie]|disattivat[oaie]|programmat[oaie]|pianificat[oaie]",
        "compress": r"compress[oaie]|zippat[oaie]",
        "share": r"condivis[oaie]",
        "install": r"installat[oaie]",
        "put": r"mess[oaie]|tolt[oaie]|sistemat[oaie]|riordinat[oaie]|inserit[oaie]"
        r"|sostituit[oaie]|ripulit[oaie]|pulit[oaie]",
    },
    "en": {
        "write": r"written|wrote|saved|added|updated|modified|edited|recorded"
        r"|overwrote|overwritten|stored",
        "create": r"created|generated|booked|made",
        "move": r"moved|renamed|archived|transferred|copied",
        "delete": r"deleted|removed|erased|trashed|emptied|cleared|wiped|discarded"
        r"|thrown|threw|got(?:ten)?\s+rid",
        "send": r"sent|emailed|mailed|forwarded|delivered|notified|messaged|texted|published",
        "set": r"set|enabled|disabled|scheduled|changed",
        "compress": r"compressed|zipped",
        "share": r"shared",
        "install": r"installed",
        "put": r"put|tidied|organi[sz]ed|inserted|replaced|cleaned",
    },
}

# Verbs whose tools may stand for one another in speech: a saved file was written or created.
# "Put" is said of all that changes where something is or what is in it.
_SAME = (
    {"write", "create", "set", "change"},
    {"move", "change"},
    {"create", "compress"},
    {"put", "write", "create", "move", "delete", "change"},
)

# Behind an arrow or a colon at the end of a line, or beside a tick.
_MARKED = r"|(?:(?:[:→]|=>|->)\s*(?:{w})\W*$)|(?:[✅✔☑][^\n]*\b(?:{w})\b)"

_FRAMES = {
    "it": r"(?:\b(?:ho|abbiamo|l'ho|li\s+ho|le\s+ho|è|sono|era|erano|viene|vengono)\s+"
    r"(?:(?:già|appena|anche|correttamente|stat[oaie]|quindi|tutt[oi]|poi|ora)\s+)*(?:{w})\b)"
    r"|(?:^\W*(?:fatto\W+)?(?:{w})\b)|(?:\b(?:{w})\s+(?:con\s+successo|correttamente)\b)"
    r"|(?:^\W*(?:promemoria|evento|appuntamento|sveglia|messaggio|e?-?mail)\s+(?:{w})\b)"
    + _MARKED,
    "en": r"(?:\b(?:i|i've|we|we've)\s+(?:(?:have|just|also|already|successfully|then|now)\s+)*"
    r"(?:{w})\b)|(?:\b(?:has|have|had|was|were|is|are|been|being|got)\s+"
    r"(?:(?:been|now|just|also|already|successfully|all)\s+)*(?:{w})\b)"
    r"|(?:^\W*(?:done\W+|successfully\s+)?(?:{w})\b)|(?:\b(?:{w})\s+successfully\b)"
    r"|(?:^\W*(?:reminder|event|appointment|alarm|message|e?-?mail)\s+(?:{w})\b)" + _MARKED,
}

# A sentence that is nothing but "done", or begins with it.
_BARE = re.compile(
    r"^\W*(?:(?:ecco|tutto|già)\s+)*fatto(?:\W*$|\s*[:,;–—-])|^\W*(?:all\s+|it's\s+)?done"
    r"(?:\W*$|\s*[:,;–—-])|^\W*all\s+set\b",
    re.MULTILINE,
)
ANY = "any"

# What is said of a change without its participle: a state, that all went well, that it goes on.
_SAID_ALSO: dict[str, tuple[tuple[str, str], ...]] = {
    "it": (
        ("delete", r"\b(?:è|sono)\s+(?:ora|adesso|già|finit[oaie])\s+nel\s+cestino\b"),
        (
            ANY,
            r"\b(?:operazione|richiesta|attività|salvataggio|eliminazione|cancellazione|invio"
            r"|spostamento|scrittura|modifica)\s+(?:è\s+stat[oa]\s+)?"
            r"(?:completat|eseguit|effettuat|riuscit|conclus|terminat)[oa]\b",
        ),
        (
            ANY,
            r"\bsto\s+(?:ora\s+|già\s+)?(?:elimin|cancell|spost|rinomin|salv|scriv|cre|invi|mand"
            r"|aggiorn|modific|aggiung)(?:ando|endo)\b",
        ),
    ),
    "en": (
        ("delete", r"\b(?:is|are)\s+(?:now|already)\s+in\s+the\s+(?:trash|bin)\b"),
        (
            ANY,
            r"\b(?:operation|task|request|deletion|removal|save|update|transfer)\s+"
            r"(?:(?:is|was|has\s+been)\s+)?(?:now\s+|successfully\s+)?"
            r"(?:completed?|executed|finished|successful)\b",
        ),
        (
            ANY,
            r"\bi(?:'m|\s+am)\s+(?:now\s+)?(?:deleting|removing|moving|renaming|saving|writing"
            r"|creating|sending|updating|adding)\b",
        ),
    ),
}

# Promises that nothing will keep once the turn has ended, unless a task was scheduled.
LATER = "later"
_SOON = {
    "it": r"più\s+tardi|dopo|stasera|stanotte|domani|dopodomani|tra\s+(?:poco|\S+\s+\w+)"
    r"|fra\s+poco|ogni\s+\w+|alle\s+\d+|(?:il|la)\s+prossim[oa]|quando\s+(?:arriv|cambi|succed|esc)\w*"
    r"|appena\s+\w+|non\s+appena",
    "en": r"later|tonight|tomorrow|soon|in\s+(?:a|an|\d+)\s+\w+|every\s+\w+|at\s+\d+|next\s+\w+"
    r"|(?:when|once|as\s+soon\s+as)\s+\w+",
}
# Those that mean a time wherever they stand.
_AT = {
    "it": r"domani|dopodomani|stasera|stanotte|più\s+tardi|[tf]ra\s+poco|alle\s+\d+"
    r"|ogni\s+(?:giorno|mattina|sera|ora|settimana|mese|lunedì|martedì|mercoledì|giovedì|venerdì)",
    "en": r"tomorrow|tonight|later|soon|at\s+\d+|every\s+(?:day|morning|evening|hour|week|month)",
}
_WILL_DO = {
    "it": r"\b(?:lo|la|li|le|ci|ti)?\s*(?:farò|controllerò|manderò|invierò|scriverò|guarderò"
    r"|verificherò|cancellerò|eliminerò|sposterò|salverò)\b",
    "en": r"\bi(?:'ll|\s+will)\s+(?:do|check|send|write|look|verify|delete|move|save|text"
    r"|message|email)\b",
}
_TELLS = r"\b(?:ti|te\s+l[oaie])\s+(?:avviso|avverto|aggiorno|faccio\s+sapere|richiamo|riscrivo)\b"
_SENDS = r"\b(?:ti|te\s+l[oaie])\s+(?:mando|invio|scrivo|(?:ricordo(?!\s+che\b)))\b"
_PROMISE = {
    "it": r"\b(?:ti|te\s+l[oaie])\s+(?:ricorderò|avviserò|avvertirò|aggiornerò"
    r"|terrò\s+aggiornat[oa]|farò\s+sapere|richiamerò|riscriverò)\b|\bterrò\s+(?:d['’]occhio|sotto\s+controllo)\b"
    r"|\bmonitorerò\b|\b(?:ricontrollerò|riproverò)\b"
    # In the present tense too, where the time is said; "ti ricordo che" reminds now.
    rf"|{_TELLS}(?=.*\b(?:{_SOON['it']})\b)|\b(?:{_AT['it']})\b.*(?:{_TELLS}|{_SENDS})"
    rf"|{_SENDS}\s+(?:{_AT['it']})\b"
    rf"|{_WILL_DO['it']}(?=.*\b(?:{_SOON['it']})\b)|\b(?:{_AT['it']})\b.*{_WILL_DO['it']}",
    "en": r"\bi(?:'ll|\s+will)\s+(?:remind|notify|alert|ping|follow\s+up|get\s+back"
    r"|let\s+you\s+know|keep\s+(?:you\s+(?:updated|posted)|an\s+eye"
    r"|monitoring|watching|checking)"
    r"|monitor|retry|(?:check|try|look)\s+again|(?:re)?check\s+back)\b"
    rf"|{_WILL_DO['en']}(?=.*\b(?:{_SOON['en']})\b)|\b(?:{_AT['en']})\b.*{_WILL_DO['en']}",
}
_NO_PROMISE = r"\bnon\b|\bse\b|\bnot\b|\bif\b|\bnever\b"

_NO_CLAIM = {
    "it": r"\bnon\b|\bné\b|\bsenza\b|\bse\b|\bvuoi\b|\bdevo\b|\bposso\b|\bpotrei\b|\bsarà\b"
    r"|\bverrà\b|\bnessun|\bprima\s+che\b|\bultima\s+volta\b|\bultima\s+modifica\b|\bfu\b",
    "en": r"\bnot\b|n't\b|\bnever\b|\bwithout\b|\bif\b|\bwould\b|\bcould\b|\bcan\b|\bshall\b"
    r"|\bwill\b|\bno\b|\bnothing\b|\bunless\b|\blast\s+(?:modified|changed|updated)\b",
}

_SENTENCE = re.compile(r"[^.!?\n]*(?:[.!?](?!\w)[\"»”)]*|\n|$|\.(?=\w)[^.!?\n]*)+")
_FENCE = re.compile(r"(```.*?(?:```|\Z)|`[^`\n]*`|«[^»\n]*»|\"[^\"\n]*\")", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Checked:
    """What may be shown, and the sentences that were taken out of it; whether claims of changes
    or promises of later work were among these."""

    text: str
    removed: tuple[str, ...] = ()
    claimed: bool = False
    promised: bool = False


def check_claims(
    text: str, *, lang: str, done: Collection[str], promises_only: bool = False
) -> Checked:
    """Take out sentences that claim a change by a verb not in `done` (verbs of changing steps
    that worked, and `LATER` for a scheduled task), and promises of later work that no task keeps.
    What lies in code or quotation marks is left alone."""
    kept: list[str] = []
    removed: list[str] = []
    unbacked: set[str] = set()
    for sentence in _sentences(text):
        verb = claimed_verb(sentence, lang)
        counts = verb == LATER or (verb is not None and not promises_only)
        if verb is not None and counts and not _covered(verb, done):
            removed.append(sentence.strip())
            unbacked.add(verb)
        else:
            kept.append(sentence)
    if not removed:
        return Checked(text)
    return Checked(
        _tidy("".join(kept)), tuple(removed), bool(unbacked - {LATER}), LATER in unbacked
    )


def claimed_verb(sentence: str, lang: str) -> str | None:
    """The verb that a sentence says was done (`any` for a bare "done", `LATER` for a promise of
    later work), None when none."""
    bare = _FENCE.sub(" x ", sentence).casefold().replace("’", "'")
    lang = guess_lang(bare, default=lang)
    if re.search(_PROMISE[lang], bare) and not re.search(_NO_PROMISE, bare):
        return LATER
    if bare.rstrip(' \n"»”)').endswith("?") or re.search(_NO_CLAIM[lang], bare):
        return None
    if _BARE.search(bare):
        return ANY
    for verb, pattern in _patterns(lang):
        if pattern.search(bare):
            return verb
    return None


@lru_cache(maxsize=8)
def _patterns(lang: str) -> tuple[tuple[str, re.Pattern[str]], ...]:
    frame = _FRAMES[lang]
    forms = [(verb, frame.replace("{w}", words)) for verb, words in _WORDS[lang].items()]
    return tuple(
        (verb, re.compile(pattern, re.MULTILINE)) for verb, pattern in (*forms, *_SAID_ALSO[lang])
    )


def _covered(verb: str, done: Collection[str]) -> bool:
    if verb == LATER:
        return LATER in done
    if verb == ANY:
        return bool(done)
    groups = _SAME if verb == "put" else _SAME[:-1]
    return verb in done or any(verb in group and group & set(done) for group in groups)


def _sentences(text: str) -> list[str]:
    """Sentences with their ends; fenced code stays one piece with what is around it."""
    pieces: list[str] = []
    for part in re.split(r"(```.*?(?:```|\Z))", text, flags=re.DOTALL):
        if part.startswith("```"):
            pieces.append(part)
        else:
            pieces += [match[0] for match in _SENTENCE.finditer(part) if match[0]]
    return pieces


def _tidy(text: str) -> str:
    return re.sub(r"\n{3,}", "\n\n", re.sub(r"[ \t]{2,}", " ", text)).strip()


_REQUEST_VERBS = {
    "it": r"\b(?:scriv|salv|crea|sposta|rinomin|elimin|cancell|rimuov|mand|invi|spedisc|aggiung"
    r"|modific|cambi|archivi|copi|annot|comprim|zipp|svuot|cestin|segna|prenot|imposta|butta"
    r"|getta|togli|leva|pulisc|ripul|metti|sistem|riordin|organizz|sostitu|inseri|memorizz"
    r"|ricord|avvis|avvert|pubblic|condivid|install|attiv|disattiv|programm|pianific|fissa"
    r"|duplic|trasferi|registr|gener|ripristin|sovrascriv|azzer|scaric|caric)\w*",
    "en": r"\b(?:writ|sav|creat|mov|renam|delet|remov|send|add|edit|chang|archiv|copy|copi|zip"
    r"|compress|empty|trash|book|set|schedul|put|updat|append|eras|not|mak|rid|throw|clean"
    r"|tidy|organi|wip|clear|replac|insert|remind|remember|notif|messag|email|repl|publish|post"
    r"|shar|install|enabl|disabl|stor|record|duplicat|transfer|restor|generat|download|upload)"
    r"\w*",
}


def names_change(request: str) -> bool:
    """Whether the request names a verb of change in either language."""
    folded = request.casefold()
    return any(re.search(pattern, folded) for pattern in _REQUEST_VERBS.values())
