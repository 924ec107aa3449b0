"""Real words one slip of the fingers away from a listed one: they are no slips of it.

`python -m tests.bench.real_words COUNTS...`: each COUNTS is a gzipped JSON object of words with
how often they were counted, as pyspellchecker 0.9.1 (MIT) ships them for `it` and `en`. Writes
`core/levels/words/real.txt` anew; to be run when `meaning.toml` has grown. Takes a minute.
"""

from __future__ import annotations

import gzip
import json
import sys
import textwrap
from pathlib import Path
from string import ascii_lowercase

from core.catalog.lexicon import fold
from core.levels import meaning_words

LEAST = 100
"""Words counted less often are names and misprints."""
_PATH = Path(meaning_words.__file__).parent / "words" / "real.txt"


def real_words(counted: list[dict[str, int]]) -> list[str]:
    """All words of these counts that would be taken for a slip."""
    listed = meaning_words.load_words()
    whole = {slip for word in listed.known for slip in _near(word)}
    begun = {slip for word in listed.prefixes for slip in _near(word)}
    told = {
        fold(word)
        for counts in counted
        for word, times in counts.items()
        if times >= LEAST and word.isalpha() and len(word) > 2
    }
    return sorted(
        word
        for word in told
        if word.isascii()
        and (word in whole or any(word[:end] in begun for end in range(2, len(word) + 1)))
        and not listed.knows(word)
        and meaning_words.slips(word) is not None
    )


def _near(word: str) -> set[str]:
    """All that one slip can make of a word, and somewhat more."""
    parts = [(word[:at], word[at:]) for at in range(len(word) + 1)]
    return {
        *(head + tail[1:] for head, tail in parts if tail),
        *(head + tail[1] + tail[0] + tail[2:] for head, tail in parts if len(tail) > 1),
        *(head + letter + tail[1:] for head, tail in parts for letter in ascii_lowercase),
        *(head + letter + tail for head, tail in parts for letter in ascii_lowercase),
    }


def main(paths: list[str]) -> None:
    counted = [json.loads(gzip.decompress(Path(path).read_bytes())) for path in paths]
    kept = _PATH.read_text("utf-8").splitlines()
    head = [line for line in kept if line.startswith("#")]
    listed = meaning_words.load_words()
    by_hand = {w for line in kept if not line.startswith("#") for w in line.split()}
    words = sorted({*real_words(counted), *(w for w in by_hand if not listed.knows(w))})
    _PATH.write_text("\n".join([*head, *textwrap.wrap(" ".join(words), 99)]) + "\n", "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
