"""The closed vocabulary of tool names, `verb_object[_qualifier]`, and what verbs do to a plan."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from enum import StrEnum


class Category(StrEnum):
    """E produces data, F formats it and closes, A acts and closes, META stands outside."""

    PRODUCES = "E"
    FORMATS = "F"
    ACTS = "A"
    META = "meta"


# fmt: off
PRODUCING = frozenset(
    [
        "read", "find", "list", "get", "filter", "sort", "group", "classify", "compute",
        "compare", "extract", "open", "login",
    ]
)
FORMATTING = frozenset(["describe", "render"])
ACTING = frozenset(
    [
        "move", "delete", "send", "share", "write", "set", "create", "change", "order",
        "compress", "install", "act",
    ]
)
VERBS = PRODUCING | FORMATTING | ACTING

# Verbs whose tools change nothing anywhere: the judge skips them (S8).
READ_ONLY_VERBS = frozenset(
    [
        "read", "find", "get", "list", "filter", "describe", "classify", "compute", "compare",
        "sort", "group",
    ]
)

OBJECTS = frozenset(
    [
        "files", "dirs", "packages", "messages", "events", "contacts", "places", "processes",
        "urls", "numbers", "images", "signatures", "texts", "proposals", "persons", "tasks",
        "inputs", "approval", "credentials", "issues", "pulls", "calendars", "entries", "lists",
        "skills", "sites", "preferences", "now", "location", "weather", "host",
    ]
)

QUALIFIERS = frozenset(
    [
        "csv", "xlsx", "ocr", "zip", "pdf", "xml", "html", "json", "text", "gz", "tar", "video",
        "audio", "image", "hash", "spreadsheet", "doc", "size", "format", "loc", "similar",
        "empty", "lines", "paragraphs", "sentences", "pages", "segments", "indices", "history",
        "thread", "labels", "web", "feed", "blacklist", "whitelist", "graylist", "forbidden",
        "seed", "sanity", "command", "reversibility", "diff", "promotion", "candidates",
        "github",
    ]
)

META_TOOLS = frozenset(
    [
        "final_answer", "undo_last_turn", "request_new_executor", "admin",
        "request_disambiguation_from_user", "request_location_from_user", "get_inputs",
        "get_approval", "scratchpad_read", "get_location",
    ]
)

RECURRING_TOOLS = frozenset(
    f"{verb}_recurring" for verb in [
        "schedule", "cancel", "list", "show", "toggle", "history", "run_now", "edit",
    ]
)

# fmt: on
# How names of tools begin that no executor has: those of servers that the host connected.
FOREIGN = "mcp"

_NAME = re.compile(r"[a-z][a-z0-9_]{2,63}")


def is_executor_name(name: str) -> bool:
    """Whether a program may carry this name: known verb, known object, known qualifiers.

    Builtin names are never free.
    """
    if not _NAME.fullmatch(name) or name in META_TOOLS or name in RECURRING_TOOLS:
        return False
    verb, *rest = name.split("_")
    if verb not in VERBS or not rest or rest[0] not in OBJECTS:
        return False
    return len(rest) <= 3 and all(word in QUALIFIERS for word in rest[1:])


def foreign_name(server: str, tool: str, *, pure: bool) -> str:
    """What a tool of a server of the host's is called here: `mcp_get_<server>_<tool>` when it
    changes nothing, else `mcp_act_…`; no executor can carry such a name. At most 64 letters, the
    end of longer ones is a digest. `server` has no underscore.

    What it may do stands in the name, as in every other: a tool that is approved anew as another
    kind of thing is another tool, for plans that are remembered too.
    """
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", tool)
    plain = unicodedata.normalize("NFKD", words).encode("ascii", "ignore").decode().casefold()
    plain = re.sub(r"[^a-z0-9]+", "_", plain).strip("_")
    name = f"{FOREIGN}_{'get' if pure else 'act'}_{server}_{plain}"
    if plain and len(name) <= 64:
        return name
    mark = hashlib.sha256(tool.encode("utf-8", "surrogatepass")).hexdigest()[:6]
    return f"{name[:57].rstrip('_')}_{mark}"


def is_foreign(name: str) -> bool:
    return name.startswith(f"{FOREIGN}_")


def spoken_foreign(name: str) -> str:
    """A foreign tool's name as people are told it; empty for any other."""
    _, _, *rest = name.split("_", 3) if is_foreign(name) else ("", "")
    return " · ".join(rest)


def verb_of(name: str) -> str:
    return name.split("_", 2)[1] if is_foreign(name) else name.split("_", 1)[0]


def object_of(name: str) -> str:
    parts = name.split("_")
    if is_foreign(name):
        return FOREIGN
    return parts[1] if len(parts) > 1 else ""


def qualifiers_of(name: str) -> tuple[str, ...]:
    return () if is_foreign(name) else tuple(name.split("_")[2:])


def family_of(name: str) -> str:
    """What tools of one kind share: object and qualifiers, or the server that they live in."""
    if is_foreign(name):
        return "_".join([FOREIGN, *name.split("_")[2:3]])
    return name.partition("_")[2]


def category_of(name: str) -> Category:
    """The pipeline category of a tool; what is no known verb is META and moves nothing."""
    if name in META_TOOLS or name in RECURRING_TOOLS:
        return Category.META
    verb = verb_of(name)
    if verb in PRODUCING:
        return Category.PRODUCES
    if verb in FORMATTING:
        return Category.FORMATS
    return Category.ACTS if verb in ACTING else Category.META


def is_read_only(name: str) -> bool:
    return verb_of(name) in READ_ONLY_VERBS
