"""The fingerprints of files: a digest of all their bytes, SHA-256 unless another is asked for."""

from __future__ import annotations

from executors._sdk import fields
from executors._sdk.digest import ALGORITHMS, digest_of
from executors._sdk.files import locate, moment, opened, shown
from executors._sdk.result import Failure, done, failed_item, from_exception, item

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from executors._sdk.call import Call

# From here on a single file tells how far it is.
_LARGE = 1 << 28


def run(call: Call) -> dict[str, Any]:
    """One entry per file: what was known of it, `size` and `modified` as they are now, and the
    digest under the name of its algorithm (`sha256`)."""
    algorithm = call.args.get("algorithm") or "sha256"
    if algorithm not in ALGORITHMS:
        raise Failure("invalid_args", f"algorithm is one of {', '.join(ALGORITHMS)}")
    given = _given(call)
    entries = []
    for number, about in enumerate(given, 1):
        entries.append(_summed(call, about, algorithm, alone=len(given) == 1))
        if len(given) > 1:
            call.progress(number, len(given))
    return done(
        entries, algorithm=algorithm, total_bytes=sum(entry.get("size") or 0 for entry in entries)
    )


def _given(call: Call) -> list[dict[str, Any]]:
    paths = call.args.get("paths")
    if paths is not None:
        return [{"path": path} for path in ([paths] if isinstance(paths, str) else paths)]
    entries = [fields.as_entry(entry) for entry in call.args.get("entries") or ()]
    # A bare list of names is a list of paths.
    return [{"path": e["value"]} if set(e) == {"value"} else e for e in entries]


def _summed(call: Call, about: dict[str, Any], algorithm: str, *, alone: bool) -> dict[str, Any]:
    path = about.get("path")
    try:
        place = locate(call, path)
        with opened(place) as (fd, info):
            total = info.st_size

            def told(at: int) -> None:
                if alone and total >= _LARGE:
                    call.progress(at >> 20, total >> 20)

            digest = digest_of(fd, algorithm, told=told)
    except (OSError, Failure) as exc:
        failed = from_exception(exc)
        code, detail = (failed.code, failed.detail) if failed else ("internal", "")
        return failed_item(code, detail, path=shown(path), name=shown(path).rsplit("/", 1)[-1])
    known = {key: value for key, value in about.items() if key not in {"ok", "error", "path"}}
    return item(
        path=place.path,
        **{
            "name": place.name,
            **known,
            "size": total,
            "modified": moment(info.st_mtime),
            algorithm: digest,
        },
    )
