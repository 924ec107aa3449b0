"""From what a person calls a file to the one absolute path it is, and whether it may be touched.

Follows links with the file system, therefore an adapter. What comes out is canonical: no `..`,
no link, no `~`. The executor opens it again beneath its root without following links, so that a
swap after this check gains nothing.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from core.errors import CallRefused, ErrorCode
from core.messages import Actor, Role

if TYPE_CHECKING:
    from core.catalog.manifest import Manifest
    from core.config import Settings
    from core.store.grants import Granted

TRASH = ".metnos-trash"

_FORBIDDEN_SEGMENTS = frozenset({".ssh", ".gnupg"})
_FORBIDDEN_TREES = ("/etc/ssh", "/root", "/boot", "/sys", "/proc")
_FORBIDDEN_FILES = re.compile(
    r"/etc/(?:passwd|shadow|gshadow|sudoers)(?:[-~.]|\.d)?.*|/dev/(?:sd|nvme|mmcblk|loop|mem|kmem).*"
)
# The same list as the child needs it, which passes over these places where a root holds them.
_CLOSED_FILES = ((".aws", "credentials"), (".config", "credentials.env"))
_SYSTEM_TREES = (
    "/etc",
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/var",
    "/run",
    "/dev",
)


@dataclass(frozen=True, slots=True)
class Scope:
    """What one actor's calls may touch: roots in the order they are searched, and their home.

    `read_only`: more folders, granted for looking only.
    """

    roots: tuple[str, ...]
    home: str
    product_home: str
    workspace: str
    read_only: tuple[str, ...] = ()

    def holds(self, path: str, *, write: bool = False) -> bool:
        return any(_inside(path, root) for root in self.roots_for(write=write))

    def roots_for(self, *, write: bool) -> tuple[str, ...]:
        """The folders beneath which a call may change things, or only look at them."""
        return self.roots if write else (*self.roots, *self.read_only)


def scope_for(actor: Actor, settings: Settings, granted: Granted | None = None) -> Scope:
    """The host's roots are `METNOS_FILES_ROOTS` and their workspace; a guest has a workspace only.
    Folders granted to the actor come on top; one that is gone or has become forbidden does not.

    Makes the workspace (0700) when it is missing.
    """
    scope = _own_scope(actor, settings)
    if granted is None:
        return scope
    write = [f for f in map(os.path.realpath, granted.write_folders) if may_be_granted(f, scope)]
    read = [f for f in map(os.path.realpath, granted.read_folders) if may_be_granted(f, scope)]
    return replace(
        scope,
        roots=tuple(dict.fromkeys([*scope.roots, *write])),
        read_only=tuple(dict.fromkeys(read)),
    )


def may_be_granted(path: str, scope: Scope) -> bool:
    """Whether a canonical path is a folder that is no forbidden place."""
    return os.path.isdir(path) and not is_forbidden(path, scope)


def _own_scope(actor: Actor, settings: Settings) -> Scope:
    workspace = settings.metnos_home / "files" / actor.id
    workspace.mkdir(mode=0o700, parents=True, exist_ok=True)
    own = os.path.realpath(workspace)
    if actor.role is not Role.HOST:
        return Scope((own,), own, os.path.realpath(settings.metnos_home), own)
    chosen = settings.metnos_files_roots
    roots = tuple(chosen) if chosen is not None else tuple(_documents())
    real = tuple(dict.fromkeys([*(os.path.realpath(root) for root in roots), own]))
    return Scope(real, str(Path.home()), os.path.realpath(settings.metnos_home), own)


def _documents() -> Sequence[Path]:
    """The documents folder by its localised name, where there is one."""
    home = Path.home()
    try:
        config = (home / ".config/user-dirs.dirs").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        config = ""
    found = re.search(r'^XDG_DOCUMENTS_DIR="\$HOME/([^"]+)"', config, re.M)
    names = [*([found[1]] if found else []), "Documents", "Documenti"]
    return [home / name for name in names if (home / name).is_dir()][:1]


def canonical_path(text: str, scope: Scope) -> str:
    """The absolute path that a person or a model means by `text`, links followed.

    A relative path is taken beneath the one root where it exists, else beneath the first; a first
    component that names a root means that root. The path need not exist. An absolute one that
    names something as it stands means that, whatever signs are in it: a step found it. Raises
    `CallRefused`: `bad_text` for control characters in what names nothing, `forbidden_path` for
    what nobody may touch, spelt in whatever way, `out_of_scope` for another person's `~name`,
    `permission_denied` where a link on the way may not be read.
    """
    spelt = text if _names_something(text) else _cleaned(text)
    if spelt.lower().startswith("file://"):
        spelt = unquote(spelt[7:])
        spelt = spelt[spelt.index("/") :] if "/" in spelt else spelt
    decoded = unquote(spelt)
    if decoded != spelt:
        # A name may truly hold a percent sign; but nothing forbidden hides behind one.
        _refuse_controls(decoded)
        refuse_forbidden(_followed(_absolute(decoded, scope), scope), scope)
    path = _followed(_absolute(spelt, scope), scope)
    if not os.path.lexists(path):
        composed = _followed(_absolute(unicodedata.normalize("NFC", spelt), scope), scope)
        path = composed if os.path.lexists(composed) else path
    refuse_forbidden(path, scope)
    return path


def _names_something(text: str) -> bool:
    # Half a character is how Python spells a name that is no text; no answer could carry it.
    is_text = not any("\ud800" <= char <= "\udfff" for char in text)
    return text.startswith("/") and is_text and os.path.lexists(text)


def _cleaned(text: str) -> str:
    _refuse_controls(text)
    return text.strip()


def _followed(path: str, scope: Scope) -> str:
    """The path with its links followed, as far as they can be read."""
    try:
        return os.path.realpath(path)
    except OSError as exc:
        # Nobody knows where such a link leads, /proc/1/root for one.
        refuse_forbidden("/" + os.path.normpath(path).lstrip("/"), scope)
        raise CallRefused(
            ErrorCode.PERMISSION_DENIED, "a link on the way cannot be read", path=path
        ) from exc


def _absolute(spelt: str, scope: Scope) -> str:
    if spelt == "~" or spelt.startswith("~/"):
        return os.path.join(scope.home, spelt[2:])
    if spelt.startswith("~"):
        name, _, rest = spelt[1:].partition("/")
        try:
            other = pwd.getpwnam(name).pw_dir
        except (KeyError, ValueError):
            return _relative(spelt, scope)
        path = _followed(os.path.join(other, rest), scope)
        refuse_forbidden(path, scope)
        raise CallRefused(ErrorCode.OUT_OF_SCOPE, "another user's home", path=spelt)
    if spelt.startswith("/"):
        return spelt
    return _relative(spelt, scope)


def _relative(spelt: str, scope: Scope) -> str:
    first, _, rest = spelt.partition("/")
    roots = scope.roots_for(write=False)
    candidates = [os.path.join(root, spelt) for root in roots]
    named = [
        os.path.join(root, rest)
        for root in roots
        if os.path.basename(root).casefold() == first.casefold()
    ]
    existing = [path for path in (*candidates, *named) if os.path.lexists(path)]
    if existing:
        return existing[0]
    return (named or candidates or [os.path.join(scope.workspace, spelt)])[0]


def refuse_forbidden(path: str, scope: Scope) -> None:
    """Raise `CallRefused(forbidden_path)` for a canonical path inside the list of S8."""
    if is_forbidden(path, scope):
        raise CallRefused(ErrorCode.FORBIDDEN_PATH, "a place that no tool may touch")


def is_forbidden(path: str, scope: Scope) -> bool:
    parts = path.casefold().split("/")
    if _FORBIDDEN_SEGMENTS.intersection(parts):
        return True
    if any(folder in parts and parts[-1] == name for folder, name in _CLOSED_FILES):
        return True
    if _FORBIDDEN_FILES.fullmatch(path):
        return True
    if any(_inside(path, tree) for tree in _forbidden_trees()):
        return True
    return _inside(path, scope.product_home) and not _inside(path, scope.workspace)


def _forbidden_trees() -> tuple[str, ...]:
    # C1: when /root is the home of the running user it is a home like any other.
    own = _own_homes()
    return tuple(tree for tree in _FORBIDDEN_TREES if tree != "/root" or "/root" not in own)


def closed_places(scope: Scope) -> dict[str, Any]:
    """The forbidden places as a call document tells them: trees, folder names, (folder, file)."""
    return {
        "trees": [scope.product_home, *_forbidden_trees()],
        "names": sorted(_FORBIDDEN_SEGMENTS),
        "files": [list(pair) for pair in _CLOSED_FILES],
    }


def holds_forbidden(path: str, scope: Scope) -> bool:
    """Whether a forbidden place lies inside this canonical path, so that moving or deleting it
    would take that place along."""
    return any(_inside(tree, path) for tree in (scope.product_home, *_forbidden_trees()))


def is_refused(path: str, scope: Scope, *, mutating: bool) -> bool:
    """Whether a call may not have this canonical path: it lies in a forbidden place, or a change
    would take one along."""
    return is_forbidden(path, scope) or (mutating and holds_forbidden(path, scope))


def folders_of(manifest: Manifest, scope: Scope) -> dict[str, Any]:
    """What a call document says of folders: manifest ∩ scope, and the places taken out of it.

    `roots`: what the call may look at, or change when it changes things; `write_roots`: what it
    may change, none for one that only looks; `closed`: see `closed_places`.
    """
    rights = {right.name for right in manifest.capabilities}
    writes = manifest.is_mutating and "fs:write" in rights
    roots = scope.roots_for(write=writes) if rights & {"fs:read", "fs:write"} else ()
    return {
        "roots": list(roots),
        "write_roots": list(roots) if writes else [],
        "closed": closed_places(scope),
    }


def is_system_tree(path: str) -> bool:
    """Whether a canonical path lies where only the system writes, outside the user's own home."""
    return any(_inside(path, tree) for tree in _SYSTEM_TREES) and not any(
        _inside(path, home) for home in _own_homes()
    )


def _own_homes() -> set[str]:
    """The running user's home as the environment says it, and as the system does."""
    homes = {os.path.realpath(Path.home())}
    with contextlib.suppress(KeyError):
        homes.add(os.path.realpath(pwd.getpwuid(os.getuid()).pw_dir))
    return homes - {"/"}


def check_scope(path: str, scope: Scope, *, write: bool = False) -> None:
    """Raise `CallRefused(out_of_scope)` unless a root holds this canonical path."""
    if not scope.holds(path, write=write):
        if scope.roots == (scope.workspace,):
            detail = "outside this person's own folder: use a name inside it"
            raise CallRefused(ErrorCode.OUT_OF_WORKSPACE, detail)
        names = ", ".join(os.path.basename(root) or root for root in scope.roots[:-1])
        raise CallRefused(
            ErrorCode.OUT_OF_SCOPE,
            "outside the folders that are open; use a path inside them",
            roots=names,
        )


def _inside(path: str, tree: str) -> bool:
    return path == tree or path.startswith(tree.rstrip("/") + "/")


def _refuse_controls(text: str) -> None:
    if not text.strip():
        raise CallRefused(ErrorCode.INVALID_ARGS, "an empty path")
    if len(text.encode("utf-8", "surrogatepass")) > 4096:
        raise CallRefused(ErrorCode.BAD_TEXT, "the path is too long")
    if any(unicodedata.category(char) in {"Cc", "Cf", "Cs"} for char in text):
        raise CallRefused(ErrorCode.BAD_TEXT, "control or invisible characters in a path")
