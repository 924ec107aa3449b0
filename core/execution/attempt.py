"""What is known of one call while it walks through the gate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from core.execution.consent import Decision
from core.execution.recipients import Along
from core.execution.standing import Given
from core.llm.client import Usage
from core.observation import Provenance


@dataclass(slots=True)
class Attempt:
    """`ran`: the program was started; `preview`: what it said that it would change; `journal`: the
    key of its row; `left_out`: arguments that nobody gave; `decision`: an answer, if any;
    `origin`: whose words the targets of a change are; `composed`: addresses that a model made;
    `given`: what is to be kept of a yes; `along`: what is written with the end of the step;
    `usage` and `model_ms`: what it cost that a model read in it."""

    checks: dict[str, str] = field(default_factory=dict)
    resolved: dict[str, Any] = field(default_factory=dict)
    key: str = ""
    mutating: bool = False
    ran: bool = False
    preview: Mapping[str, Any] | None = None
    journal: str | None = None
    left_out: tuple[str, ...] = ()
    decision: Decision | None = None
    origin: Provenance | None = None
    composed: tuple[str, ...] = ()
    given: Given | None = None
    along: Along | None = None
    usage: Usage = field(default_factory=Usage)
    model_ms: int = 0
