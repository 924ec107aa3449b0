"""The values that requests speak of, and the folders in which they are found."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random

SHOPPING = ("spesa.txt", "shopping.txt")
DIARY = ("diario.md", "diary.md")
DOCS = tuple(
    f"{name}.txt" for name in "spesa casa idee viaggio ricette lavori regali bollette".split()
)
NOTES = tuple(f"{name}.md" for name in "diario libri orto film dieta".split())
FOLDERS = (
    "lavoro",
    "scuola",
    "Documenti",
    "vacanze2025",
    "ricevute",
    "lavoro/verbali",
    "Fatture",
    "archivio_vecchio",
)
PATHS = tuple(f"{folder}/{name}.txt" for folder in FOLDERS[:5] for name in ("verbale", "appunti"))
CITIES = (
    ("Lisbona", "Lisbon"),
    ("Tokyo", "Tokyo"),
    ("Londra", "London"),
    ("New York", "New York"),
    ("Parigi", "Paris"),
    ("Sydney", "Sydney"),
    ("Lima", "Lima"),
    ("Madrid", "Madrid"),
    ("Berlino", "Berlin"),
    ("Oslo", "Oslo"),
)
TOWNS = ("Borgo", "Altrove", "Hamlet")
WORDS = "contratto garanzia bolletta preventivo modulo ricevuta mappa".split()
LINES = (
    ("latte e uova", "milk and eggs"),
    ("chiamare l'idraulico", "call the plumber"),
    ("pane", "bread"),
    ("comprare le lampadine", "buy light bulbs"),
    ("rinnovare la tessera", "renew the card"),
    ("portare l'auto dal meccanico", "take the car to the garage"),
    ("mele, pere, banane", "apples, pears, bananas"),
    ("ritirare il pacco", "pick up the parcel"),
)
GLOBS = ("*.csv", "*.log", "*.epub", "*.odt", "bolletta*.pdf", "img*.jpg")
POINTS = ("Farmacia Centrale", "Ramen Sette", "Aeroporto di Borgo")
COORDS = ("44.601,10.9", "44.605,10.9", "44.85,10.9", "44.602,10.9")
PAGES = ("page", "page?n=1", "page?n=2", "page?n=3", "page?n=4")
# What is looked for, by language; a map server finds both.
SOUGHT = {
    "pharmacy": ("farmacia", "pharmacy"),
    "restaurant": ("ristorante", "restaurant"),
    "supermarket": ("supermercato", "supermarket"),
    "petrol": ("benzinaio", "petrol station"),
    "airport": ("aeroporto", "airport"),
}
SAME = {word: both[0] for both in SOUGHT.values() for word in both}
NUMBERS = frozenset({"n", "a", "b", "mb", "kb", "km"})


@dataclass(frozen=True, slots=True)
class Said:
    """A value as it stands in the words, and as a plan holds it."""

    words: str
    meant: str


Draw = Callable[[Random, str, int], str | Said]


def _pair_of(both: tuple[str, str]) -> Draw:
    return lambda rng, lang, serial: both[lang == "en"]


def _pair(pairs: tuple[tuple[str, str], ...]) -> Draw:
    return lambda rng, lang, serial: rng.choice(pairs)[lang == "en"]


def _quoted(rng: Random, lang: str, serial: int) -> Said:
    text = rng.choice(LINES)[lang == "en"]
    opens, closes = rng.choice(('""', "«»", "“”"))
    return Said(f"{opens}{text}{closes}", text)


def _sought(name: str) -> Draw:
    return lambda rng, lang, serial: SOUGHT[name][lang == "en"]


_SLOTS: Mapping[str, Draw] = {
    "doc": lambda rng, lang, serial: rng.choice(DOCS),
    "note": lambda rng, lang, serial: rng.choice(NOTES),
    "path": lambda rng, lang, serial: rng.choice(PATHS),
    "dir": lambda rng, lang, serial: rng.choice(FOLDERS),
    "city": _pair(CITIES),
    "town": lambda rng, lang, serial: rng.choice(TOWNS),
    "shopping_file": _pair_of(SHOPPING),
    "diary_file": _pair_of(DIARY),
    "word": lambda rng, lang, serial: rng.choice(WORDS),
    "glob": lambda rng, lang, serial: rng.choice(GLOBS),
    "poi": lambda rng, lang, serial: rng.choice(POINTS),
    "coords": lambda rng, lang, serial: rng.choice(COORDS),
    "quoted": _quoted,
    "n": lambda rng, lang, serial: str(rng.randint(2, 15)),
    "a": lambda rng, lang, serial: str(rng.randint(2, 9)),
    "b": lambda rng, lang, serial: str(rng.randint(10, 30)),
    "mb": lambda rng, lang, serial: str(rng.choice((1, 2, 5, 10, 20, 50))),
    "kb": lambda rng, lang, serial: str(rng.choice((1, 2, 5, 10, 100, 500))),
    "km": lambda rng, lang, serial: str(rng.choice((2, 5, 10, 40))),
    "junk": lambda rng, lang, serial: f"{rng.choice(('bozza', 'copia', 'prova'))}{serial}.txt",
    "junk2": lambda rng, lang, serial: f"{rng.choice(('bozza', 'copia', 'prova'))}{serial}b.txt",
    "new": lambda rng, lang, serial: f"{rng.choice(('nota', 'promemoria', 'lista'))}{serial}.txt",
    **{name: _sought(name) for name in SOUGHT},
}


def draw(slot: str, rng: Random, lang: str, serial: int, url: str, taken: set[str]) -> Said:
    """A value for a slot that none of `taken` is; `serial` makes the names of new files new."""
    if slot.startswith("url"):
        drawn = [f"{url}/{page}" for page in PAGES if f"{url}/{page}" not in taken]
        return _as_said(rng.choice(drawn))
    one = _SLOTS.get(slot) or _SLOTS[slot.rstrip("2")]
    for _ in range(100):
        said = _as_said(one(rng, lang, serial))
        if said.meant not in taken:
            return said
    raise ValueError(f"no other value for {slot}")


def _as_said(value: str | Said) -> Said:
    return value if isinstance(value, Said) else Said(value, value)


def furnish(space: Path) -> None:
    """The files that a person has: the same for everybody, so that a mix-up would go unnoticed
    by their look alone."""
    for name in FOLDERS:
        (space / name).mkdir(parents=True, exist_ok=True)
    for number, name in enumerate(dict.fromkeys((*DOCS, *NOTES, *PATHS, *SHOPPING, *DIARY))):
        lines = "".join(f"riga {line} di {name}\n" for line in range(1, 34 + number))
        (space / name).write_text(lines, encoding="utf-8")
    for number, name in enumerate(
        "bolletta1.pdf contratto.pdf img1.jpg img2.png gita.mp4 canto.mp3 conti.csv conti.xlsx"
        " lettera.docx foto.zip vuoto.dat orario.log libro.epub".split()
    ):
        for folder in ("", "lavoro/", "Documenti/"):
            data = b"" if name == "vuoto.dat" else b"x" * (500 + 700 * number)
            (space / folder / name).write_bytes(data)
