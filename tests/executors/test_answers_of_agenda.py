"""What a person reads of their calendar and contacts, in both languages."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.catalog.manifest import parse_manifest
from core.i18n import Texts
from core.levels.renderer import Renderer
from core.observation import Observation
from tests.executors.file_cases import run
from tests.support.run_executor import TREE

LOCALES = Path(__file__).parents[2] / "locales"
EVENT = "BEGIN:VEVENT\nUID:{}\n{}\nSUMMARY:{}\nEND:VEVENT\n"
DENTIST = EVENT.format(
    "d1", "DTSTART;TZID=Europe/Rome:20260320T100000\nDTEND;TZID=Europe/Rome:20260320T110000\n"
    "LOCATION:Via Roma 1", "Dentista",
)  # fmt: skip
YOGA = EVENT.format(
    "y1", "DTSTART;TZID=Europe/Rome:20260319T180000\nDTEND;TZID=Europe/Rome:20260319T190000\n"
    "RRULE:FREQ=WEEKLY;COUNT=5", "Yoga",
)  # fmt: skip
TRIP = EVENT.format("f1", "DTSTART;VALUE=DATE:20260328\nDTEND;VALUE=DATE:20260330", "Gita")
CARDS = (
    "BEGIN:VCARD\nFN:Anna Rossi\nORG:Studio\nTEL:02 7654321\nEND:VCARD\n"
    "BEGIN:VCARD\nFN:Anna Rossi\nEMAIL:anna@mail.example\nEND:VCARD\n"
    "BEGIN:VCARD\nFN:Niccolò\nTITLE:Elettricista\nTEL:333 1112223\nEND:VCARD\n"
)
CASES = [
    ("read_events", {"time_window": "2026-04-10"}, "Non c'è niente in calendario.",
     "There is nothing in the calendar."),
    ("read_events", {"time_window": "2026-03-20"},
     "Dentista: venerdì 20 marzo 2026, 10:00–11:00\nVia Roma 1",
     "Dentista: Friday 20 March 2026, 10:00–11:00\nVia Roma 1"),
    ("read_events", {"time_window": "2026-03-28"},
     "Gita: 28 marzo, tutto il giorno (fino al 29 marzo)",
     "Gita: 28 March, all day (until 29 March)"),
    ("read_events", {"time_window": "2026-03-19/2026-03-20"},
     "2 appuntamenti:\n• giovedì 19 marzo 2026, 18:00–19:00: Yoga\n"
     "• venerdì 20 marzo 2026, 10:00–11:00: Dentista, Via Roma 1",
     "2 events:\n• Thursday 19 March 2026, 18:00–19:00: Yoga\n"
     "• Friday 20 March 2026, 10:00–11:00: Dentista, Via Roma 1"),
    ("create_events", {"summary": "Call", "start": "2026-03-20T10:30", "duration_minutes": 30},
     "Ho segnato «Call»: venerdì 20 marzo 2026, 10:30–11:00. A quell'ora c'è già: Dentista.",
     "It is in the calendar: “Call”, Friday 20 March 2026, 10:30–11:00. "
     "At that time there is already: Dentista."),
    ("create_events", {"summary": "Festa", "start": "2026-03-21"},
     "Ho segnato «Festa»: 21 marzo, tutto il giorno.",
     "It is in the calendar: “Festa”, 21 March, all day."),
    ("change_events", {"event_ids": ["|y1|20260319T170000Z"], "start": "alle 19"},
     "Ho cambiato «Yoga»: giovedì 19 marzo 2026, 19:00–20:00 (solo quella volta).",
     "I changed “Yoga”: Thursday 19 March 2026, 19:00–20:00 (only that time)."),
    ("delete_events", {"event_ids": ["|d1|"]}, "Ho tolto dal calendario «Dentista».",
     "I deleted “Dentista” from the calendar."),
    ("delete_events", {"event_ids": ["|y1|"], "series": True},
     "Ho tolto dal calendario «Yoga» (tutta la serie).",
     "I deleted “Yoga” from the calendar (the whole series)."),
    ("delete_events", {"event_ids": ["|y1|20260319T170000Z", "|d1|"]},
     "Ho tolto 2 appuntamenti:\n• Yoga (2026-03-19 18:00) (solo quella volta)\n• Dentista",
     "I deleted 2 events:\n• Yoga (2026-03-19 18:00) (only that time)\n• Dentista"),
    ("find_events_empty", {"time_window": "2026-03-20", "duration_minutes": 300},
     "Sei libero: venerdì 20 marzo 2026, 11:00–20:00.",
     "You are free: Friday 20 March 2026, 11:00–20:00."),
    ("find_events_empty", {"time_window": "2026-03-20", "duration_minutes": 900},
     "In quel periodo non hai 900 minuti liberi.",
     "You have no 900 free minutes in that time."),
    ("find_contacts", {"query": "zeno"}, "Non trovo nessun contatto per «zeno».",
     "I find no contact for “zeno”."),
    ("find_contacts", {"query": "niccolo"}, "Niccolò, Elettricista\n333 1112223",
     "Niccolò, Elettricista\n333 1112223"),
    ("find_contacts", {"query": "anna"},
     "2 contatti:\n• Anna Rossi (Studio) · 02 7654321\n• Anna Rossi · anna@mail.example",
     "2 contacts:\n• Anna Rossi (Studio) · 02 7654321\n• Anna Rossi · anna@mail.example"),
]  # fmt: skip


@pytest.mark.parametrize("lang", ["it", "en"])
@pytest.mark.parametrize(("name", "args", "italian", "english"), CASES)
def test_answers_read_as_people_say_them(tmp_path, name, args, italian, english, lang):
    (tmp_path / "Calendario.ics").write_text(
        f"BEGIN:VCALENDAR\nVERSION:2.0\n{DENTIST}{YOGA}{TRIP}END:VCALENDAR\n"
    )
    (tmp_path / "Contatti.vcf").write_text(CARDS)
    manifest = parse_manifest((TREE / name / "manifest.toml").read_bytes(), folder=name)
    renderer = Renderer(Texts.load(LOCALES), lang, "Europe/Rome", str(tmp_path))

    seen = Observation.from_json(run(name, args, tmp_path, lang=lang))

    blocks = renderer.observation(seen, manifest)
    assert "\n".join(b.text for b in blocks) == {"it": italian, "en": english}[lang]
