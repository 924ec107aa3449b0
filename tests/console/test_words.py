"""Every text that a page may ask for is there: by its whole name, and by each word that stands at
the end of one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import bot.console
from bot.app import load_texts
from bot.console.figures import LEVELS
from bot.console.pages import actors, effects, executors, turns
from bot.console.story import CHECKS
from core.accounts import AccountKind
from core.catalog.manifest_types import Effect
from core.dialogs import SuspensionKind, SuspensionState
from core.execution.policy import Consent
from core.messages import Autonomy, Role
from core.store.feedback import Vote
from core.store.grants import GrantKind
from core.store.visitors import VisitorState

TEXTS = load_texts()
_LITERAL = re.compile(r"""\bt\(\s*"([a-z_][a-z0-9_.]*[a-z0-9_])"\s*[,)]""")

# What may follow the beginning of a name that is put together.
WORDS = {
    "console.kind.": (*turns.KINDS, "running", "waiting"),
    "console.source.": (*turns.SOURCES, *LEVELS),
    "console.place.": ("terminal", "group", "private"),
    "console.vote.": tuple(Vote),
    "console.check.": CHECKS,
    "console.verdict.": ("ok", "denied", "without", *set(Consent) - {Consent.NOT_NEEDED}),
    "console.effect_state.": effects.STATES,
    "console.undo.": "itself nothing undone running partly no_way too_late not_last until".split(),
    "console.question.": tuple(SuspensionKind),
    "console.question_state.": (*SuspensionState, "late"),
    "console.role.": tuple(Role),
    "console.autonomy.": tuple(Autonomy),
    "console.grant.": tuple(GrantKind),
    "console.visitor.": tuple(VisitorState),
    "console.account.": tuple(AccountKind),
    "console.limit.": actors.LIMITS,
    "console.lifecycle.": (
        *executors.LIFECYCLES,
        *(f"{state}.how" for state in executors.LIFECYCLES),
    ),
    "console.effect.": (*Effect, *(f"{effect.value}.how" for effect in Effect)),
}


def _sources() -> str:
    here = Path(str(bot.console.__file__)).parent
    files = [*here.rglob("*.py"), *here.rglob("*.html")]
    return "\n".join(file.read_text(encoding="utf-8") for file in files)


@pytest.mark.parametrize("lang", TEXTS.langs)
def test_text_that_pages_name_is_there(lang: str) -> None:
    named = set(_LITERAL.findall(_sources()))

    assert len(named) > 100
    assert {key for key in named if not TEXTS.has(key, lang)} == set()


@pytest.mark.parametrize("lang", TEXTS.langs)
def test_text_that_pages_put_together_is_there(lang: str) -> None:
    keys = [f"{start}{word}" for start, words in WORDS.items() for word in words]

    assert [key for key in keys if not TEXTS.has(key, lang)] == []
