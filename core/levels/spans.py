"""Values that stand in the person's text, by type: what a plan's typed arguments may be.

Paths, addresses, amounts with their units, file patterns, quoted text, places and what is to be
written, in Italian and English. Pure. Finds candidates and decides nothing: a small model chooses
among them, and can choose nothing that was not said.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

from core.catalog.lexicon import STOP_WORDS, load_lexicon, stem, without_pronoun
from core.execution.values import fold
from core.levels.amounts import (
    NOT_A_NAME,
    Amount,
    amounts_in,
    coordinates_in,
    direction_in,
    operation_in,
)
from core.levels.contents import contents_of
from core.levels.file_words import FAMILIES, INTO, KNOWN_EXTENSIONS, TOP_LEVEL, URL

Grade = Literal["said", "named", "hinted"]


@dataclass(frozen=True, slots=True)
class PathSpan:
    """A name of a file or folder.

    `grade`: "said" has the form of a path, "named" stands beside a word like "cartella",
    "hinted" only follows a preposition. `role`: where the words put it, "" when they do not.
    """

    text: str
    grade: Grade
    role: Literal["", "source", "target"]
    at: int

    @property
    def is_file(self) -> bool:
        """Whether it has the form of a file's name."""
        return bool(_EXTENSION.search(self.text))


@dataclass(frozen=True, slots=True)
class Spans:
    """Everything found, in the order of the text. `patterns` are plainly meant (`*.pdf`),
    `name_patterns` are guesses by the words of the text (`*bolletta*`)."""

    urls: tuple[str, ...] = ()
    paths: tuple[PathSpan, ...] = ()
    amounts: tuple[Amount, ...] = ()
    patterns: tuple[str, ...] = ()
    name_patterns: tuple[str, ...] = ()
    quoted: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    coords: tuple[str, ...] = ()
    sought: tuple[str, ...] = ()
    contents: tuple[str, ...] = ()
    descending: bool | None = None
    operation: str | None = None

    @property
    def files(self) -> tuple[PathSpan, ...]:
        return tuple(path for path in self.paths if path.is_file)

    def with_antecedents(self, earlier: Spans) -> Spans:
        """What an earlier request spoke of, where this one names no file and no address."""
        if self.urls or any(path.grade == "said" for path in self.paths):
            return self
        said = tuple(replace(p, role="") for p in earlier.paths if p.grade == "said")
        return replace(self, urls=earlier.urls, paths=(*said, *self.paths))


_QUOTED = re.compile(r"«([^«»]{1,2000})»|“([^“”]{1,2000})”|\"([^\"]{1,2000})\"|`([^`]{1,500})`"
                     r"|(?<![\w])'([^'\n]{1,500})'(?!\w)")  # fmt: skip
_HOST = re.compile(
    rf"""(?ix) (?<![\w@./~-]) (?:[a-z0-9-]{{1,63}}\.)+ (?:{TOP_LEVEL})
    (?: [:/][^\s<>"'«»]* )? (?![\w.])"""
)
_EXTENSION = re.compile(r"(?i)[^\s/]\.(?=[a-z0-9]*[a-z])[a-z0-9]{1,5}$")
_PATH = re.compile(
    r"""(?x)
      (?<![\w:/.~]) (?: ~[\w-]* | \.{1,2} )? / [^\s"'«»“”`,;!?()]*      # absolute, home, ./
    | (?<![\w:/.~]) ~ (?![\w/])
    | (?<![\w:/.@-]) [\w.+-]+ (?: / [\w.+@=%-]+ )+ /?                   # with a slash
    | (?<![\w:/.@*?-]) [\w+-] [\w.+-]* \. (?=[A-Za-z0-9]*[A-Za-z])[A-Za-z0-9]{2,5} (?![\w@/])
    """
)
_GLOB = re.compile(
    r"(?<![\w/])[\w.-]*[*?][\w.*?-]*\w[\w.*?-]*|(?<![\w/.])\.([A-Za-z0-9]{1,5})\b(?!/)"
)
_NO_PATH = re.compile(r"(?i)\d+(?:[/.]\d+)+|\w{1,2}/\w{1,2}|and/or|(?:he|him|his)/\w+|[\w]+/s")

_FROM = frozenset(
    """from da dal dalla dallo dai dalle dall di del della dello dell under sotto on of""".split()
)
_NEAR_FOLDER = frozenset("from da dal dalla dai on under inside".split())
_FOLDER = {"cartella", "cartelle", "folder", "folders", "directory", "dir", "percorso", "path"}
_FILE = {"file", "nota", "note", "documento", "document"}
_ARTICLES = frozenset(
    """the a an my our il lo la l i gli le un una mio mia miei mie this that quel quella questo
    questa file called named chiamata chiamato""".split()
)
_WORD = re.compile(r"[^\W_][\w-]*'?|_[\w-]+", re.UNICODE)
_CALLED = re.compile(
    r"""(?ix) \b(?: chiamat[oaie] | si\ chiam(?:a|ano) | nome | called | named | titled )
    \s+ (?: contiene\s+ | contenente\s+ | con\s+ | is\s+ )? ([\w-]{2,})"""
)
_SOUGHT = re.compile(
    r"""(?ix) \b(?: (?:che\ )? (?:contiene|contengono) | contenent[ei] | contains? | containing
      | che\ (?:dicono|dice|ha|hanno|parlano\ di|parla\ di)
      | that\ (?:mentions?|says?|have|has) | mentioning
      | (?:lines?|rows?|rig(?:he|a)|linee|those|quell[ie]|entries|items)
        (?: \ (?:of|di|del|in|nel|from)\ \x00+ )? \ (?:with|con|of|di)
    )\s+ (?: (?:the|la|il)\ (?:word|text|parola|testo)\ )? ([\w@.\#-]{2,})"""
)


def find_spans(text: str) -> Spans:
    """All candidates of one text; of very long ones only the first 8000 characters are read."""
    text = text[:8000]
    quoted = _quoted(text)
    urls, rest = _urls(text)
    patterns, rest = _patterns(rest)
    paths, rest = _paths(rest)
    amounts = amounts_in(rest)
    names = _names(rest)
    paths = sorted([*paths, *(n for n in names if all(n.text != p.text for p in paths))],
                   key=lambda p: p.at)  # fmt: skip
    patterns += [p for p in _families(rest, {n.text for n in names}) if p not in patterns]
    called = [f"*{match[1]}*" for match in _CALLED.finditer(rest)]
    return Spans(
        urls=_unique(urls),
        paths=tuple(paths),
        amounts=tuple(amounts),
        patterns=_unique([*patterns, *called]),
        name_patterns=_name_patterns(rest, paths),
        quoted=_unique(quoted),
        places=_unique(_places(rest)),
        coords=_unique(coordinates_in(text)),
        sought=_unique([m[1] for m in _SOUGHT.finditer(rest)]),
        contents=contents_of(text, paths, quoted),
        descending=direction_in(rest),
        operation=operation_in(rest),
    )


def _unique(found: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(found))


def _blank(text: str, start: int, end: int, mark: str = " ") -> str:
    """The text with a piece blanked out, so that positions stay."""
    return text[:start] + mark * (end - start) + text[end:]


def _quoted(text: str) -> list[str]:
    return [next(group for group in match.groups() if group) for match in _QUOTED.finditer(text)]


def _urls(text: str) -> tuple[list[str], str]:
    urls: list[str] = []
    for pattern in (URL, _HOST):
        for match in list(pattern.finditer(text)):
            url = match[0].rstrip(".,;:!?)]}'\"")
            urls.append(url)
            text = _blank(text, match.start(), match.start() + len(url), "\x00")
    return urls, text


def _patterns(text: str) -> tuple[list[str], str]:
    found: list[str] = []
    for match in list(_GLOB.finditer(text)):
        ending = match[1]
        if ending is None and match[0].strip("?").isalpha():
            continue  # the question mark of a sentence
        found.append(f"*.{ending}" if ending else match[0].rstrip(".,;"))
        text = _blank(text, match.start(), match.end(), "\x00")
    return found, text


def _paths(text: str) -> tuple[list[PathSpan], str]:
    found: list[PathSpan] = []
    matches = [m for m in _QUOTED.finditer(text) if _is_quoted_path(m[0][1:-1])]
    spots = [(m.start() + 1, m[0][1:-1]) for m in matches]
    inside = [(m.start(), m.end()) for m in _QUOTED.finditer(text)]
    for match in _PATH.finditer(text):
        name = match[0].rstrip(".,;:!?)") or match[0]
        if any(start < match.start() < end for start, end in inside) or _NO_PATH.fullmatch(name):
            continue
        spots.append((match.start(), name))
    for start, name in sorted(spots):
        found.append(PathSpan(name, "said", _role(text, start), start))
    for span in found:
        text = _blank(text, span.at, span.at + len(span.text), "\x00")
    return found, text


def _is_quoted_path(name: str) -> bool:
    return bool(_EXTENSION.search(name)) or (
        name.startswith(("/", "~/", "./")) or ("/" in name and " " not in name)
    )


def _role(text: str, at: int) -> Literal["", "source", "target"]:
    """What the preposition before a name says; articles and words like "cartella" between."""
    before = re.findall(r"[^\W\d_]+", fold(text[max(0, at - 60) : at]))
    if re.search(r"[,;:]\s*['\"«“]?$", text[max(0, at - 3) : at]):
        return ""
    for word in reversed(before[-4:]):
        if before[-2:] in (["rid", "of"], ["sbarazzati", "di"]):
            return ""
        if word in INTO:
            return "" if _points_back(before, word) else "target"
        if word in _FROM:
            return "source"
        if word not in _ARTICLES and word not in _FOLDER and word not in _FILE:
            return ""
    return ""


def _points_back(before: list[str], word: str) -> bool:
    """`mettici dentro a.pdf`, `put in it a.pdf`: what follows is put, not where it is put."""
    at = len(before) - 1 - before[::-1].index(word)
    led = before[at - 1] if at else ""
    return word == "dentro" and (led in {"li", "la", "qui"} or led.endswith(("ci", "vi")))


def _names(text: str) -> list[PathSpan]:
    """Names of folders that do not look like paths."""
    words = _words(text)
    folded = [fold(word) for word, _ in words]
    found: list[PathSpan] = []
    for i, (word, at) in enumerate(words):
        # After a preposition a capital makes a name even of a word like "Download".
        if not _may_be_name(word, folded[i]) and not (i and word[0].isupper() and len(word) > 3):
            continue
        behind = list(reversed(folded[max(0, i - 3) : i]))
        if behind[:1] == ["a"] and word[0].islower():
            continue  # English's article; as Italian's preposition it is followed by a name
        before = [f for f in behind if f not in _ARTICLES or f == "a"]
        near = before[0] if before else ""
        after = folded[i + 1] if i + 1 < len(words) else ""
        noun = near in _FOLDER or (near in _FROM and len(before) > 1 and before[1] in _FOLDER)
        role = _role(text, at)
        if noun or after in _FOLDER & {"folder", "directory", "dir"}:
            found.append(PathSpan(_with_capitals(words, i), "named", role, at))
            if near in {"cartelle", "folders"} and after in {"e", "and"} and words[i + 2 :]:
                at = words[i + 2][1]
                found.append(PathSpan(_with_capitals(words, i + 2), "named", role, at))
        elif near in INTO or near in _NEAR_FOLDER:
            found.append(PathSpan(_with_capitals(words, i), "hinted", role, at))
    return found


def _words(text: str) -> list[tuple[str, int]]:
    """Words and where they begin; `nell'ultima` is two."""
    return [(m[0].rstrip("'"), m.start()) for m in _WORD.finditer(text)]


def _may_be_name(word: str, folded: str) -> bool:
    return (
        len(word) > 1
        and not word[0].isdigit()
        and folded not in STOP_WORDS
        and folded not in NOT_A_NAME
        and folded not in _ARTICLES
        and folded not in _FOLDER
        and folded not in _FILE
    )


def _with_capitals(words: list[tuple[str, int]], i: int) -> str:
    """`Foto Mare` where capitals follow capitals, else the one word."""
    name, end = words[i][0], words[i][1] + len(words[i][0])
    for word, at in words[i + 1 : i + 4]:
        if at != end + 1 or not (word[0].isupper() and name[0].isupper()):
            break
        name, end = f"{name} {word}", at + len(word)
    return name


def _families(text: str, folders: set[str]) -> list[str]:
    """Patterns of kinds of files: `i pdf`, `photos`. A folder of that name is no kind."""
    found: list[str] = []
    for match in _WORD.finditer(text):
        word = fold(match[0])
        if match[0] in folders:
            continue
        bare = word[:-1] if word.endswith("s") and word[:-1] in KNOWN_EXTENSIONS else word
        if bare in KNOWN_EXTENSIONS:
            found.append(f"*.{bare}")
        elif word in FAMILIES:
            found += [f"*.{ending}" for ending in FAMILIES[word]]
    return found


def _name_patterns(text: str, paths: list[PathSpan]) -> tuple[str, ...]:
    """Guesses at names: the files named, else words of the text that say no deed and no time."""
    said = [path.text for path in paths if path.grade == "said" and path.is_file]
    if said:
        return _unique([name for name in said if "/" not in name])
    taken = {fold(path.text) for path in paths}
    return _unique(
        [
            f"*{word}*"
            for word, _ in _words(text)
            if len(word) > 3
            and _may_be_name(word, fold(word))
            and fold(word) not in taken
            and not _is_verb(fold(word))
        ]
    )[:8]


def _is_verb(folded: str) -> bool:
    lexicon = load_lexicon()
    bare = without_pronoun(folded)
    return lexicon.is_verb(stem(folded)) or (bare is not None and lexicon.is_verb(bare))


_BEFORE_PLACE = frozenset("a ad in at di da per for of from to near nel nella negli".split())


def _places(text: str) -> list[str]:
    """Names after a preposition, and capitalised ones within a sentence."""
    words = _words(text)
    found: list[str] = []
    for i, (word, at) in enumerate(words):
        if not _may_be_name(word, fold(word)) or any(c.isdigit() for c in word):
            continue
        before = fold(words[i - 1][0]) if i else ""
        inner = i > 0 and not re.search(r"[.!?\n]\s*$", text[:at])
        if word[0].isupper() and inner:
            if not words[i - 1][0][0].isupper() or not _may_be_name(words[i - 1][0], before):
                found.append(_with_capitals(words, i))
        elif before in _BEFORE_PLACE or (i > 1 and before in _ARTICLES):
            following = words[i + 1][0] if i + 1 < len(words) else ""
            together = words[i + 1][1] == at + len(word) + 1 if following else False
            if together and _may_be_name(following, fold(following)):
                found.append(f"{word} {following}")
            found.append(word)
        elif i + 1 < len(words) and fold(words[i + 1][0]) in {"time", "ora", "ore"}:
            found.append(word)
    return found
