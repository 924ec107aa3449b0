"""Two lists of entries side by side: by which fields they are the same thing, and which are."""

from __future__ import annotations

from executors._sdk import fields, values
from executors._sdk.result import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    Entries = Sequence[Mapping[str, Any]]
    Key = tuple[str, ...]

# What tells things apart, best first; people's own columns come after these.
_NAMING = (
    "path", "id", "uid", "message_id", "sku", "isbn", "code", "codice", "url", "email", "name",
    "nome", "product", "prodotto", "articolo", "item", "title", "titolo", "subject", "value",
)  # fmt: skip
_MOST_KEYS = 10


def keys_of(first: Entries, second: Entries, wanted: Sequence[Any] | None) -> list[str]:
    """The fields by which entries are matched: the wanted ones, else the best that both have.

    Best is a usual name or the first column that some entries of both lists have alike, and by
    which no two entries of one list are the same. Raises `Failure(unknown_field)` for a wanted
    one that neither list has, `Failure(no_shared_field)` when the lists share none.
    """
    both = [*first, *second]
    if wanted:
        if len(wanted) > _MOST_KEYS:
            raise Failure("invalid_args", f"at most {_MOST_KEYS} keys")
        return [fields.known_field(str(name), both) for name in wanted]
    if not first or not second:
        names = fields.field_names(both, most=200)
        return [next((n for n in _NAMING if n in names), names[0] if names else "value")]
    mine, others = (fields.field_names(each, most=200) for each in (first, second))
    shared = [name for name in mine if name in set(others)]
    shared.sort(key=lambda name: _NAMING.index(name) if name in _NAMING else len(_NAMING))
    if not shared:
        known = ", ".join(others[:20])
        raise Failure("no_shared_field", "the lists share no field", field=mine[0], fields=known)
    meeting = [name for name in shared if _meet(first, second, name)]
    apart = [n for n in meeting if _is_unique(first, n) and _is_unique(second, n)]
    # A path says where as well as what: two folders share none.
    rest = [name for name in shared if name != "path"] or shared
    return [(apart or meeting or rest)[0]]


def key_of(entry: Mapping[str, Any], keys: Sequence[str]) -> Key:
    """What an entry is matched by: the folded words of these fields."""
    return tuple(values.fold(values.as_text(fields.lookup(entry, name))) for name in keys)


def by_key(entries: Entries, keys: Sequence[str]) -> dict[Key, list[Mapping[str, Any]]]:
    """The entries of each key, both in their order."""
    found: dict[Key, list[Mapping[str, Any]]] = {}
    for entry in entries:
        found.setdefault(key_of(entry, keys), []).append(entry)
    return found


def _present(entries: Entries, name: str) -> list[str]:
    found = (fields.lookup(entry, name) for entry in entries)
    return [values.fold(values.as_text(v)) for v in found if not fields.is_missing(v)]


def _meet(first: Entries, second: Entries, name: str) -> bool:
    return not set(_present(first, name)).isdisjoint(_present(second, name))


def _is_unique(entries: Entries, name: str) -> bool:
    found = _present(entries, name)
    return len(found) == len(entries) == len(set(found))
