"""Endings of file names, kinds of files by what people call them, and endings of host names."""

from __future__ import annotations

import re

# Words that are also endings: `i pdf`, `the isos`.
KNOWN_EXTENSIONS = frozenset(
    """pdf txt csv tsv jpg jpeg png gif webp heic svg tiff bmp mp3 wav flac ogg mp4 mkv avi mov
    webm doc docx xls xlsx ppt pptx odt ods odp rtf epub zip rar tar gz 7z iso img dmg exe deb rpm
    apk json xml yaml yml toml ini html css js ts py ipynb java md tmp bak log sql sqlite ics vcf
    eml""".split()
)
_IMAGES = "jpg jpeg png gif webp heic".split()
_SOUNDS = "mp3 wav flac ogg m4a".split()
_FILMS = "mp4 mkv avi mov webm".split()
_SHEETS = "xlsx xls ods csv".split()
_SLIDES = "pptx ppt odp".split()
FAMILIES = {
    **dict.fromkeys(
        "foto fotografie immagini immagine photos photo pictures images".split(), _IMAGES
    ),
    **dict.fromkeys("canzoni musica audio songs music".split(), _SOUNDS),
    **dict.fromkeys("video filmati videos movies".split(), _FILMS),
    **dict.fromkeys("spreadsheet spreadsheets excel".split(), _SHEETS),
    **dict.fromkeys("presentazioni presentations slides".split(), _SLIDES),
}
TOP_LEVEL = "com|org|net|it|eu|io|dev|info|edu|gov|uk|de|fr|es|ch|example|test|local"

# Prepositions that say where something goes.
INTO = frozenset(
    """in into to onto nel nella nello nei nelle negli nell a al alla allo ad su sul sulla as come
    inside dentro""".split()
)

# An address as it is written in a text, with what may stand behind it.
URL = re.compile(r"(?i)\b(?:https?://|www\.)[^\s<>\"'«»“”`]+")
