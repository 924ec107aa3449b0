"""Name patterns as people and models write them: `*.pdf`, `pdf`, `.pdf`, `note*`, `docs/**/*.md`.

Case, and the two ways of composing an accented letter, make no difference.
"""

from __future__ import annotations

import fnmatch
import re
import unicodedata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_PATTERNS = 200
# A bare word is an extension when it is one of these, else a piece of the name.
_EXTENSION_WORDS = """
pdf doc docx xls xlsx ppt pptx odt ods odp rtf txt md tex csv tsv json xml html htm yaml yml toml
ini cfg conf log eml mbox ics vcf epub mobi jpg jpeg png gif bmp tif tiff svg webp heic raw mp3 wav
ogg oga flac m4a aac mp4 m4v mkv avi mov webm zip tar gz tgz bz2 xz 7z rar iso img deb rpm apk exe
dmg bak tmp part py js ts css c h cpp hpp java rs go rb php sh sql db sqlite p7m key pem crt gpx
kml srt ttf otf
"""
_EXTENSIONS = frozenset(_EXTENSION_WORDS.split())
_GLOB = re.compile(r"[*?\[]")
_BRACES = re.compile(r"\{([^{}]*)\}")


class Patterns:
    """Some patterns of which one must match; none: everything matches.

    `wants_hidden`: a pattern itself starts with a dot and is more than an extension, so names that
    start with one are meant too.
    """

    def __init__(self, patterns: Sequence[str]) -> None:
        written = [one.strip() for one in patterns if one.strip()]
        self.wants_hidden = any(_is_hidden_name(one.rpartition("/")[2]) for one in written)
        rules: list[list[re.Pattern[str] | None]] = []
        for one in written:
            rules += [_rule(plain) for plain in _spread(one)[: MAX_PATTERNS - len(rules)]]
        self._by_name: list[re.Pattern[str]] = []
        self._by_path: list[list[re.Pattern[str] | None]] = []
        for rule in rules:
            only = rule[0] if len(rule) == 1 else None
            if only is None:
                self._by_path.append(rule)
            else:
                self._by_name.append(only)

    def match(self, parts: Sequence[str]) -> bool:
        """Whether a file, as its path components under the searched folder, is meant.

        A pattern without a slash speaks of the name alone.
        """
        if not self._by_name and not self._by_path:
            return True
        if parts and self._by_name:
            name = _fold(parts[-1])
            for rule in self._by_name:
                if rule.match(name):
                    return True
        if not self._by_path:
            return False
        folded = [_fold(part) for part in parts]
        return any(_matches(path, folded) for path in self._by_path)


def _is_hidden_name(name: str) -> bool:
    return name.startswith(".") and name[1:].casefold() not in _EXTENSIONS


def _spread(pattern: str) -> list[str]:
    """`*.{jpg,png}` as two patterns; at most `MAX_PATTERNS`."""
    waiting = [pattern]
    plain: list[str] = []
    while waiting and len(plain) + len(waiting) <= MAX_PATTERNS:
        one = waiting.pop(0)
        found = _BRACES.search(one)
        if found is None:
            plain.append(one)
            continue
        waiting += [one[: found.start()] + x + one[found.end() :] for x in found[1].split(",")]
    return plain + waiting[: MAX_PATTERNS - len(plain)]


def _rule(pattern: str) -> list[re.Pattern[str] | None]:
    """One compiled pattern per component; None stands for `**`, any number of folders."""
    parts = [part for part in _fold(pattern).split("/") if part not in ("", ".")]
    if len(parts) == 2 and parts[0] == "**":
        parts = parts[1:]
    if parts:
        parts[-1] = _widened(parts[-1])
    return [None if part == "**" else re.compile(fnmatch.translate(part)) for part in parts]


def _widened(name: str) -> str:
    if _GLOB.search(name):
        return name
    if name in _EXTENSIONS:
        return f"*.{name}"
    if re.fullmatch(r"\.\w{1,10}", name):
        return f"*{name}"
    # With an extension of its own it is a whole name, without one a piece of it.
    return name if re.search(r"\.\w{1,5}$", name) else f"*{name}*"


def _matches(rule: list[re.Pattern[str] | None], parts: list[str]) -> bool:
    # Positions in `rule` that the components so far can have reached: linear, whatever the stars.
    reached = _past_folders(rule, {0})
    for part in parts:
        onward = set()
        for at in reached:
            if at < len(rule):
                step = rule[at]
                if step is None:
                    onward.add(at)
                elif step.match(part):
                    onward.add(at + 1)
        reached = _past_folders(rule, onward)
    return len(rule) in reached


def _past_folders(rule: list[re.Pattern[str] | None], reached: set[int]) -> set[int]:
    for at in range(len(rule)):
        if at in reached and rule[at] is None:
            reached.add(at + 1)
    return reached


def _fold(text: str) -> str:
    if text.isascii():
        return text.casefold()
    return unicodedata.normalize("NFC", text).casefold()
