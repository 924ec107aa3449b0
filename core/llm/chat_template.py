"""The chat template inside a GGUF file, and what is changed in it at run time."""

from __future__ import annotations

import struct
from pathlib import Path

_HEADER_BYTES = 16 << 20


def fence_template(path: Path) -> str:
    """The chat template inside a GGUF file, with its tags for calls replaced by fences.

    This model writes ```json fences whatever it is told; a server that expects them finds its
    calls. "" when the file holds no template that can be found: the server then uses its own.
    """
    key = b"tokenizer.chat_template"
    with path.open("rb") as file:
        head = file.read(_HEADER_BYTES)
    at = head.find(key)
    start = at + len(key)
    if at < 0 or head[start : start + 4] != struct.pack("<I", 8):  # 8: the value is a string
        return ""
    (length,) = struct.unpack_from("<Q", head, start + 4)
    text = head[start + 12 : start + 12 + length].decode("utf-8", "replace")
    if len(text) == 0 or start + 12 + length > len(head):
        return ""
    return (
        text.replace("<tool_call></tool_call> XML tags", "a ```json fenced block")
        .replace("<tool_call>", "```json")
        .replace("</tool_call>", "```")
    )
