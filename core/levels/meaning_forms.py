"""The forms of verbs in which people ask for something, Italian and English. Pure.

Commands, infinitives, gerunds and polite moods, with the pronouns that Italian joins to them.
Participles and the third person are left out: they tell and do not ask. So are pronouns that say
to whom (`gli`, `glielo`), for a recipient must stay seen.
"""

from __future__ import annotations

from collections.abc import Iterable

_CLITICS = ("mi", "lo", "la", "li", "le", "ne", "melo", "mela", "meli", "mele", "mene")
_BEFORE = ("mi", "me_lo", "me_la", "me_li", "me_le", "me_ne")


def italian_forms(infinitive: str) -> set[str]:
    """Of a regular verb; a `+` after it says that it goes like `spedire`, `spedisci`. What is a
    noun or a participle as well (`ordini`, `inviate`) is left out, or stands after `mi`."""
    verb = infinitive.rstrip("+")
    stem, ending = verb[:-3], verb[-3:]
    if ending == "are":
        hard = f"{stem}h" if stem.endswith(("c", "g")) else stem
        before_e = stem[:-1] if stem.endswith(("ci", "gi")) else hard
        asked = stem if stem.endswith("i") else f"{hard}i"
        command, plural, formal = f"{stem}a", "ate", ""
        mood, gerund, wish = f"{before_e}er", f"{stem}ando", f"{stem}assi"
    elif ending == "ere":
        command = asked = stem if stem.endswith("i") else f"{stem}i"
        plural, formal = "ete", f"{stem}a"
        mood, gerund, wish = f"{stem}er", f"{stem}endo", f"{stem}essi"
    else:
        long = f"{stem}isc" if infinitive.endswith("+") else stem
        command = asked = f"{long}i"
        plural, formal = "ite", f"{long}a"
        mood, gerund, wish = f"{stem}ir", f"{stem}endo", f"{stem}issi"
    hosts = (command, verb[:-1], gerund, f"{stem}{plural}")
    return {
        command,
        verb,
        gerund,
        wish,
        f"{mood}esti",
        f"{mood}ebbe",
        f"{mood}este",
        f"{mood}ai",
        *(f"{before}_{asked}" for before in _BEFORE),
        *(f"{host}{clitic}" for host in hosts for clitic in _CLITICS),
        *({formal} - {""}),
    }


def english_forms(verb: str) -> set[str]:
    """Of a verb; a `+` after it says that its last letter is doubled (`stopping`)."""
    stem = verb.rstrip("+")
    if verb.endswith("+"):
        return {stem, f"{stem}{stem[-1]}ing"}
    if stem.endswith("e") and not stem.endswith(("ee", "ye", "oe")):
        return {stem, f"{stem[:-1]}ing"}
    return {stem, f"{stem}ing"}


def forms(lang: str, verbs: str) -> Iterable[str]:
    """All forms of a list of verbs; verbs of several words (`turn_on`) change in their first."""
    for verb in verbs.split():
        first, *rest = verb.split("_")
        made = italian_forms(first) if lang == "it" else english_forms(first)
        for form in sorted(made):
            yield "_".join([form, *rest])
