"""What the tools that change mail share: which messages are meant, and how they stand now."""

from __future__ import annotations

from executors._sdk.imap import MessageId, account_of, opened
from executors._sdk.result import Failure, failed_by, failed_item, from_exception

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from executors._sdk.call import Call
    from executors._sdk.imap import Box

MOST = 500


def ids_of(call: Call) -> list[MessageId]:
    """The messages of a call, each once: `ids`, and those of the entries of another step."""
    given = [*(call.args.get("ids") or ()), *(e.get("id") for e in call.args.get("entries") or ())]
    found = [MessageId.read(one) for one in dict.fromkeys(map(str, given))]
    if len(found) > MOST:
        raise Failure("too_many", f"{MOST} messages at most", count=len(found), limit=MOST)
    return found


def known_of(call: Call) -> dict[str, str]:
    """Message → subject, as far as the entries of another step say it."""
    entries = call.args.get("entries") or ()
    return {str(e.get("id")): str(e.get("subject") or "") for e in entries if isinstance(e, dict)}


def by_folder(ids: Sequence[MessageId]) -> dict[tuple[str, str], list[MessageId]]:
    found: dict[tuple[str, str], list[MessageId]] = {}
    for one in ids:
        found.setdefault((one.account, one.folder), []).append(one)
    return found


def present(
    box: Box, folder: str, names: Sequence[MessageId], *, readonly: bool = True
) -> tuple[list[MessageId], list[MessageId]]:
    """Those that are there, and those that are not any more. Opens the folder."""
    box.open(folder, readonly=readonly)
    wanted = [one for one in names if one.validity == box.validity]
    there: set[int] = set()
    if wanted:
        there = set(box.uids(f"UID {','.join(str(one.uid) for one in wanted)}"))
    kept = [one for one in wanted if one.uid in there]
    return kept, [one for one in names if one not in kept]


def missing(gone: Sequence[MessageId]) -> list[dict[str, Any]]:
    """The entries of messages that are not there any more."""
    return [failed_item("not_found", "it is not there any more", id=str(one)) for one in gone]


def each_folder(
    call: Call, work: Callable[[Box, str, list[MessageId]], list[dict[str, Any]]]
) -> list[dict[str, Any]]:
    """What `work` makes of the messages of each folder, as entries: one that fails, with all of
    its messages, costs the others nothing, and what was done in them stays told."""
    entries: list[dict[str, Any]] = []
    ids, known = ids_of(call), known_of(call)
    for (account, folder), names in by_folder(ids).items():
        try:
            with opened(account_of(call, account)) as box:
                entries += work(box, folder, names)
        except (Failure, OSError) as exc:
            failed = from_exception(exc)
            if failed is None:
                raise
            entries += [
                failed_by(failed, id=str(one), subject=known.get(str(one), "")) for one in names
            ]
        call.progress(len(entries), len(ids))
    return entries


def previewed(
    call: Call, *, check: Callable[[Box], object] | None = None, **more: Any
) -> dict[str, Any]:
    """What a change of these messages would touch; `check` raises for what an account cannot do.
    Raises `Failure` when none of them can be reached, `not_found` when none is there any more."""
    ids, known = ids_of(call), known_of(call)
    count, targets = 0, []
    last: Failure | None = None
    for (account, folder), names in by_folder(ids).items():
        try:
            with opened(account_of(call, account)) as box:
                if check is not None:
                    check(box)
                there, _ = present(box, folder, names)
        except (Failure, OSError) as exc:
            last = from_exception(exc)
            if last is None:
                raise
            continue
        count += len(there)
        targets += [known.get(str(name)) or f"{folder} {name.uid}" for name in there]
    if ids and not count:
        raise last or Failure("not_found", "none of these messages is there any more")
    return {"targets": targets, "count": count, **more}
