"""What a guest may use of the catalogue, by the rights that manifests ask for. Pure.

The lists are policy as data. The host may grant one person more rights; what is nobody's but the
host's stays so.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from core.accounts import HINT, AccountKind
from core.catalog.loaded import Catalog
from core.catalog.manifest import Manifest
from core.messages import Actor, Role

# Their own workspace, the clock, places and reading the web; computing needs nothing.
RIGHTS = frozenset(
    {"compute:pure", "time:read", "location:read", "fs:read", "fs:write", "network:http"}
)

# What the host may open to one guest: their own accounts, and models. Sending to others, running
# commands and changing the house are never a guest's.
_GRANTABLE = frozenset(
    {
        "mail:read",
        "mail:write",
        "calendar:read",
        "calendar:write",
        "contacts:read",
        "contacts:write",
        "llm:local",
        "llm:online",
    }
)


# What anybody may use: no files, no accounts, and no server but those of the services set.
_PUBLIC = frozenset({"compute:pure", "time:read", "location:read", "network:http"})
_SERVICE = "service:"


def is_public(manifest: Manifest) -> bool:
    """Whether a stranger may use this tool: it only looks, and speaks to no server of their
    choosing."""
    asked = manifest.capabilities
    return (
        manifest.effect == "pure"
        and not manifest.is_mutating
        and {right.name for right in asked} <= _PUBLIC
        and all(
            right.hints and all(map(_is_no_choice, right.hints))
            for right in asked
            if right.name == "network:http"
        )
    )


def _is_no_choice(hint: str) -> bool:
    """Of a stranger: the services that are set, and accounts, of which a stranger has none."""
    return hint.startswith(_SERVICE) or (hint.startswith(HINT) and hint.endswith("?"))


def public_catalog(catalog: Catalog) -> Catalog:
    """What strangers have of the catalogue. Nothing of it is said to exist beyond that."""
    return _only(catalog, {n for n, e in catalog.executors.items() if is_public(e.manifest)})


def grantable_rights() -> frozenset[str]:
    """The rights that `metnos grants add right` knows."""
    return _GRANTABLE


def may_use(manifest: Manifest, rights: Collection[str]) -> bool:
    """Whether somebody with these further rights may be offered this tool as a guest: it asks for
    no right beyond theirs, and changes nothing on the network."""
    asked = {right.name for right in manifest.capabilities}
    # To speak to a server is reading, unless the tool changes something there.
    changes_there = manifest.is_mutating and "network:http" in asked
    return asked <= RIGHTS | (_GRANTABLE & set(rights)) and not changes_there


def at_home(value: Any, home: str) -> Any:
    """A JSON value in which a guest's folder is called `~`, as they may call it themselves: its
    whole path names places of the host."""
    if isinstance(value, str):
        return value.replace(home, "~")
    if isinstance(value, list | tuple):
        return [at_home(item, home) for item in value]
    if isinstance(value, Mapping):
        return {key: at_home(item, home) for key, item in value.items()}
    return value


def catalog_for(
    actor: Actor,
    catalog: Catalog,
    rights: Collection[str] = (),
    accounts: Collection[AccountKind] = (),
) -> Catalog:
    """The catalogue as this actor has it: whole for the host, for a guest without what they may
    not use; what lacks an account of theirs (`accounts`: the kinds they have) is dormant. The very
    same object when nothing is left out."""
    if actor.role is not Role.HOST:
        granted = frozenset(rights)
        names = {n for n, e in catalog.executors.items() if may_use(e.manifest, granted)}
        catalog = _only(catalog, names)
    return _without_dormant(catalog, accounts)


def _without_dormant(catalog: Catalog, accounts: Collection[AccountKind]) -> Catalog:
    have = frozenset(accounts)
    lacking = {
        name: min(missing)
        for name, one in catalog.executors.items()
        if (missing := one.manifest.needed_accounts - have)
    }
    if not lacking:
        return catalog
    text = "\n".join([catalog.signature, "dormant", *lacking])
    signature = hashlib.sha256(text.encode()).hexdigest()
    return replace(catalog, signature=signature, dormant=lacking)


def _only(catalog: Catalog, names_kept: Collection[str]) -> Catalog:
    """The catalogue with these alone; the very same object when these are all."""
    kept = {name: one for name, one in catalog.executors.items() if name in names_kept}
    if len(kept) == len(catalog.executors):
        return catalog
    names = "\n".join([catalog.signature, *kept])
    return replace(
        catalog,
        executors=kept,
        signature=hashlib.sha256(names.encode()).hexdigest(),
        withheld=frozenset(catalog.executors) - frozenset(kept),
    )
