"""A server of tools as a program of its own, made with the real library: a notebook in a folder.

`python -m tests.support.mcp_server FOLDER [http PORT]`; FOLDER/said.json says other words of its
tools, or leaves one out.
"""

from __future__ import annotations

import base64
import json
import os
import sys
from pathlib import Path
from typing import Any

from mcp.server.mcpserver import Image, MCPServer

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def build(folder: Path) -> MCPServer:
    """The server over the notes of a folder."""
    said: dict[str, str] = {}
    if (folder / "said.json").exists():
        said = json.loads((folder / "said.json").read_text())
    server = MCPServer("notebook")

    def find_notes(query: str, maxResults: int = 10) -> list[dict[str, Any]]:
        return [
            {"title": path.stem, "text": path.read_text(), "ok": "yes"}
            for path in sorted(folder.glob("*.note"))
            if query in path.read_text()
        ][:maxResults]

    def add_note(title: str, text: str) -> str:
        (folder / f"{title}.note").write_text(text)
        return f"added {title}"

    def picture() -> Image:
        return Image(data=PIXEL, format="png")

    def environment() -> dict[str, str]:
        return dict(os.environ)

    tools: dict[str, tuple[Any, str]] = {
        "find_notes": (find_notes, "Find notes by a word. Reads only."),
        "add_note": (add_note, "Add a note to the notebook."),
        "picture": (picture, "Draw a picture."),
        "environment": (environment, "Tell the environment."),
    }
    for name, (function, text) in tools.items():
        if said.get(name) != "":
            server.add_tool(function, name=name, description=said.get(name, text))
    return server


if __name__ == "__main__":
    place = Path(sys.argv[1])
    print("notebook opens", file=sys.stderr)
    if sys.argv[2:3] == ["http"]:
        build(place).run("streamable-http", port=int(sys.argv[3]))
    else:
        build(place).run("stdio")
