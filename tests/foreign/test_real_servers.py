"""Servers made with the protocol's own library, over both ways to them."""

from __future__ import annotations

import base64
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from core.foreign.link import Link, LinkFailed
from core.foreign.results import observation_of
from core.observation import Provenance
from tests.support.mcp_server import PIXEL

REPO = Path(__file__).resolve().parents[2]


@contextmanager
def over_http(folder: Path) -> Iterator[str]:
    """The notebook on a port of its own; its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [sys.executable, "-m", "tests.support.mcp_server", str(folder), "http", str(port)]
    env = {"PYTHONPATH": str(REPO), "PATH": os.defpath}
    null = subprocess.DEVNULL
    process = subprocess.Popen(words, env=env, stdout=null, stderr=null)
    try:
        end = time.monotonic() + 60
        while True:
            with socket.socket() as there:
                if there.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert time.monotonic() < end
            assert process.poll() is None
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()
        process.wait()


async def use(link: Link) -> None:
    """What a notebook is for."""
    await link.open()
    listed = {one.tool for one in await link.tools()}
    added = await link.call("add_note", {"title": "spesa", "text": "latte"}, None)
    found = await link.call("find_notes", {"query": "latte", "maxResults": 2}, None)
    drawn = await link.call("picture", {}, None)

    assert {"add_note", "find_notes", "picture"} <= listed
    assert observation_of(added, mutating=True, most=9999).content == "added spesa"
    notes = observation_of(found, mutating=False, most=9999)
    assert notes.entries is not None
    assert notes.provenance is Provenance.EXTERNAL
    # `ok` is ours, whatever the server calls so.
    assert dict(notes.entries[0]) == {"ok": True, "title": "spesa", "text": "latte", "ok_": "yes"}
    picture = observation_of(drawn, mutating=False, most=9999)
    assert picture.entries is not None
    body = picture.entries[0]["content"]
    assert base64.b64decode(body["blob"]) == PIXEL
    assert body["media_type"] == "image/png"


async def test_over_pipes(tmp_path: Path) -> None:
    argv = (sys.executable, "-m", "tests.support.mcp_server", str(tmp_path))
    link = Link(argv=argv, secrets={"PYTHONPATH": str(REPO)}, folder=tmp_path)
    try:
        await use(link)
        own = await link.call("environment", {}, None)
        said = json.loads(own["content"][0]["text"])
        assert set(said) - {"LC_CTYPE"} == {"PYTHONPATH"}
    finally:
        await link.close()


async def test_over_http(tmp_path: Path) -> None:
    with over_http(tmp_path) as url:
        link = Link(url=url, secrets={"X-Key": "k"}, folder=tmp_path)
        try:
            await use(link)
        finally:
            await link.close()
    gone = Link(url=url, secrets={}, folder=tmp_path)
    with pytest.raises(LinkFailed):
        await gone.open()
