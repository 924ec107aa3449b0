"""The closed vocabulary of tool names, `verb_object[_qualifier]`, and what verbs do to a plan."""

from __future__ import annotations

import re
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


def verb_of(name: str) -> str:
    return name.split("_", 1)[0]


def object_of(name: str) -> str:
    parts = name.split("_")
    return parts[1] if len(parts) > 1 else ""


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
