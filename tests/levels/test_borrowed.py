"""What was said before a request is no part of what its plan means another time."""

from __future__ import annotations

from typing import Any

import pytest

from core.execution.context import Exchange
from core.levels.borrowed import borrows
from core.levels.fastpath import lesson_of
from core.levels.tracing import NotKept
from core.plan import Plan, Step
from tests.support.remembering import ended_well, turn_of

TALK = ("leggi progetto-segreto.md", "Ecco: la lista di Tokyo, 3 pdf, size 12")


@pytest.mark.parametrize(
    ("request_", "args", "borrowed"),
    [
        ("trova i file grandi", {"patterns": ["*segreto*"]}, True),
        ("trova i file segreto", {"patterns": ["*segreto*"]}, False),
        ("che ore sono lì?", {"timezone": "Asia/Tokyo"}, True),
        ("che ore sono a Tokyo?", {"timezone": "Asia/Tokyo"}, False),
        ("trova i documenti", {"patterns": ["*.pdf"]}, False),
        ("ordina i file", {"by": "size", "from_step": 1}, False),
        ("trova i file", {"where": [{"field": "size", "op": "gt", "value": 3}]}, False),
        ("trova i file", {"where": [{"field": "name", "value": "Progetto"}]}, True),
        ("trova i file", {"base_path": "{{step1.lista}}"}, False),
        ("trova i file", {"patterns": ["*alt*"]}, False),
    ],
)
def test_words_of_earlier_talk_in_a_plan(request_: str, args: dict[str, Any], borrowed: bool):
    plan = Plan((Step("find_files", args),))
    assert borrows(plan, request_, TALK) is borrowed
    assert not borrows(plan, request_, ())


def test_plan_that_borrowed_is_not_kept():
    plan = Plan((Step("find_files", {"patterns": ["*segreto*"]}),))
    alone = turn_of("trova i file grandi")
    assert lesson_of(alone, ended_well(alone, plan)).plan == plan

    context = turn_of("trova i file grandi", conversation=(Exchange(*TALK),))
    with pytest.raises(NotKept, match="from_conversation"):
        lesson_of(context, ended_well(context, plan))
