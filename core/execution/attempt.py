"""What is known of one call while it walks through the gate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from core.execution.consent import Decision


@dataclass(slots=True)
class Attempt:
    """`ran`: the program was started; `preview`: what it said that it would change; `journal`: the
    key of its row; `left_out`: arguments nobody gave; `decision`: the answer to a question."""

    checks: dict[str, str] = field(default_factory=dict)
    resolved: dict[str, Any] = field(default_factory=dict)
    key: str = ""
    mutating: bool = False
    ran: bool = False
    preview: Mapping[str, Any] | None = None
    journal: str | None = None
    left_out: tuple[str, ...] = ()
    decision: Decision | None = None
