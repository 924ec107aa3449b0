"""What the cage needs to know of a program, of `_sdk` and of the egress broker, and no more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from core.egress.rules import Right
from core.execution.cage.frame import Limits


class OutputLimits(Limits, Protocol):
    """Everything a manifest limits for one call."""

    @property
    def output_bytes(self) -> int: ...


class ProgramManifest(Protocol):
    """What the cage needs to know of a manifest."""

    @property
    def name(self) -> str: ...
    @property
    def is_mutating(self) -> bool: ...
    @property
    def requires(self) -> tuple[str, ...]: ...
    @property
    def provenance(self) -> str: ...
    @property
    def capabilities(self) -> Sequence[Right]: ...
    @property
    def timeout_s(self) -> float: ...
    @property
    def limits(self) -> OutputLimits: ...


class Program(Protocol):
    """A loaded executor: its manifest and its verified bytes by path inside its folder."""

    @property
    def manifest(self) -> ProgramManifest: ...
    @property
    def files(self) -> Mapping[str, bytes]: ...


class SdkFiles(Protocol):
    """The verified bytes of `_sdk`, by path inside its folder."""

    @property
    def files(self) -> Mapping[str, bytes]: ...


class Broker(Protocol):
    """The egress broker, as far as the cage knows it."""

    def serve(
        self, executor: Program, call: Mapping[str, Any]
    ) -> AbstractAsyncContextManager[int]:
        """The call's end of a SOCK_SEQPACKET pair of unix sockets, served until the call has
        ended. The call inherits it, and finds its number in `broker_fd` of its frame."""
        ...
