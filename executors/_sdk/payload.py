"""What is to be written where: from the arguments of a writing call to paths and bytes."""

from __future__ import annotations

import base64
import binascii
import json
import os

from executors._sdk.result import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from executors._sdk.call import Call

MODES = ("overwrite", "append", "create")
# Where an entry of another step keeps what it is about, in this order.
_BODIES = ("content", "body", "text")
_NAMES = ("path", "url", "title", "name", "value")


class Job:
    """One file to write. `path` is what was asked, not yet checked.

    `why_only_new`: the reason why nothing that exists may be touched, if there is one: there was
    no content at all, or only part of it. `partial`: the text is known to be a part of what it
    comes from. `repeated`: an earlier item of the call goes there already.
    """

    __slots__ = ("_content", "mode", "partial", "path", "repeated", "why_only_new")

    def __init__(
        self,
        path: object,
        content: object,
        mode: str,
        *,
        partial: bool = False,
        repeated: bool = False,
    ) -> None:
        self.path = path
        self.mode = mode
        self.partial = partial
        self.repeated = repeated
        self._content = content
        self.why_only_new: tuple[str, str] | None = None
        if content is None:
            self.why_only_new = ("missing_input", "content is missing; the file is left as it is")
        elif partial and mode == "overwrite":
            self.why_only_new = (
                "too_large",
                "only part of the text was read, so it does not replace a file",
            )

    def data(self, *, after: int | None = None, size: int = 0) -> bytes:
        """The bytes to write: text as UTF-8, a blob as it was served.

        `after`: descriptor of the file of `size` bytes that they will follow. Text then begins on
        a line of its own and takes the encoding of the file when that is text.
        Raises `Failure`: bad_text, invalid_args (a blob that is none), other_encoding (the file's
        has no such characters), too_large (part of a blob).
        """
        content = self._content
        if content is None:
            return b""
        if isinstance(content, dict):
            return _bytes_of(content)
        if not isinstance(content, str):
            content = json.dumps(content, ensure_ascii=False, indent=1)
        codec = "utf-8"
        if after is not None and size:
            codec = _codec_of(after, size)
            newline = "\n".encode(codec)
            last = os.pread(after, len(newline), max(0, size - len(newline)))
            if last != newline and not content.startswith(("\n", "\r")):
                content = "\n" + content
        try:
            plain = content.encode("utf-8")
        except UnicodeEncodeError as exc:
            raise Failure("bad_text", "the text holds half a character") from exc
        try:
            return plain if codec == "utf-8" else content.encode(codec)
        except UnicodeEncodeError as exc:
            raise Failure("other_encoding", f"the file is in {codec}: write it anew") from exc


def jobs_of(call: Call) -> list[Job]:
    """The files a call wants written, in order.

    `path` with `content` is one. `entries` each bring their own path and content; with `path` too
    they all go into that one file, texts one after the other, or a line for each that has no text.
    Raises `Failure` invalid_args or missing_input.
    """
    mode = call.args.get("mode") or "overwrite"
    if mode not in MODES:
        raise Failure("invalid_args", f"mode is one of {', '.join(MODES)}")
    path, content = call.args.get("path"), call.args.get("content")
    entries = call.args.get("entries")
    if entries is None or content is not None:
        if path is None:
            raise Failure("missing_input", "path is missing")
        return [Job(path, content, mode)]
    if path is not None:
        return [_into(path, entries, mode)]
    return _each(entries, mode)


def _each(entries: list[Any], mode: str) -> list[Job]:
    """One job per entry, in order; what is appended to one file several times goes there at once,
    while two items that would replace one another are refused from the second on."""
    groups: dict[str, list[Any]] = {}
    for entry in entries:
        groups.setdefault(_path_of(entry) or "", []).append(entry)
    jobs: list[Job] = []
    for entry in entries:
        path = _path_of(entry)
        if path is None:
            jobs.append(Job(None, None, mode))
            continue
        group = groups[path]
        if group[0] is not entry:
            if mode != "append":
                jobs.append(Job(path, "", mode, repeated=True))
        elif mode == "append" and len(group) > 1:
            jobs.append(_into(path, group, mode))
        elif _body(entry) is None:
            jobs.append(Job(path, None, mode))
        else:
            jobs.append(_into(path, [entry], mode))
    return jobs


def _path_of(entry: Any) -> str | None:
    path = entry.get("path") if isinstance(entry, dict) else None
    return path if isinstance(path, str) else None


def _into(path: object, entries: list[Any], mode: str) -> Job:
    partial = any(
        isinstance(entry, dict) and entry.get("truncated") is True and _is_text(entry)
        for entry in entries
    )
    return Job(path, _together(entries), mode, partial=partial)


def _is_text(entry: dict[str, Any]) -> bool:
    return isinstance(_body(entry), str)


def _body(entry: dict[str, Any]) -> Any:
    return next((entry[key] for key in _BODIES if entry.get(key) is not None), None)


def _together(entries: list[Any]) -> Any:
    """One content for several entries: texts one after the other, a line for what has no text."""
    bodies = [_body(entry) if isinstance(entry, dict) else entry for entry in entries]
    if len(bodies) == 1 and bodies[0] is not None:
        return bodies[0]
    pieces = [
        _line(entry) if body is None else _as_text(body)
        for entry, body in zip(entries, bodies, strict=True)
    ]
    return "".join(piece if piece.endswith("\n") else piece + "\n" for piece in pieces)


def _as_text(body: Any) -> str:
    if isinstance(body, str):
        return body
    if not isinstance(body, dict):
        return json.dumps(body, ensure_ascii=False)
    try:
        return _bytes_of(body).decode(body.get("charset") or "utf-8")
    except (LookupError, UnicodeDecodeError) as exc:
        raise Failure("not_text", "several bodies go into one file only as text") from exc


def _line(entry: Any) -> str:
    if isinstance(entry, dict):
        for key in _NAMES:
            if isinstance(entry.get(key), str) and entry[key]:
                return str(entry[key])
    return json.dumps(entry, ensure_ascii=False)


def _bytes_of(blob: dict[str, Any]) -> bytes:
    encoded = blob.get("blob")
    if not isinstance(encoded, str):
        raise Failure("invalid_args", "content is a text, or an object with blob in base64")
    if blob.get("truncated") is True:
        raise Failure("too_large", "only part of the body was fetched, so it is not written")
    try:
        return base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError) as exc:
        raise Failure("invalid_args", "blob is not base64") from exc


def _codec_of(fd: int, size: int) -> str:
    from executors._sdk.encodings import detect

    try:
        return detect(fd, size).codec
    except Failure:  # no text: what is appended to it is its writer's affair
        return "utf-8"
