"""What an executor may import. Runs in the child, which receives this module as code.

A contract and no wall: it keeps honest programs from leaning on what their manifest does not say.
"""

from __future__ import annotations

import marshal
import sys
from _frozen_importlib import BuiltinImporter, FrozenImporter, ModuleSpec
from _frozen_importlib_external import PathFinder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import CodeType, ModuleType
    from typing import Any

    Modules = Mapping[str, tuple[bool, bytes, bool]]

_SDK = "executors._sdk"
_STDLIB = tuple(sys.path)


class Shelf:
    """Packages that a zygote has imported, out of reach until a call that declared them.

    With each lie the modules of `_sdk` that lean on it. Only names are kept away: an undeclared
    `import httpx` then fails as it would in a fresh process.
    """

    def __init__(self) -> None:
        self._modules: dict[str, tuple[frozenset[str], ModuleType]] = {}

    def put(self) -> None:
        """Take every module off `sys.modules` that is not the standard library's or `_sdk`'s."""
        owners: dict[int, str] = {}
        for name, module in list(sys.modules.items()):
            top = name.partition(".")[0]
            known = top in sys.stdlib_module_names or top.startswith("_sysconfigdata")
            if not known and top not in {"__main__", "executors"}:
                owners[id(module)] = top
                self._modules[name] = (frozenset({top}), sys.modules.pop(name))
        for name, module in list(sys.modules.items()):
            if name.startswith(_SDK + "."):
                used = {owners[id(v)] for v in vars(module).values() if id(v) in owners}
                if used:
                    self._modules[name] = (frozenset(used), sys.modules.pop(name))
                    vars(sys.modules[_SDK]).pop(name.rpartition(".")[2], None)

    def give(self, packages: frozenset[str] | None = None) -> None:
        """Put back what needs no other packages than these; all of it when None."""
        for name, (tops, module) in self._modules.items():
            if packages is None or tops <= packages:
                sys.modules[name] = module
                if name.startswith(_SDK + "."):
                    vars(sys.modules[_SDK])[name.rpartition(".")[2]] = module


def open_for_preloading(modules: Modules, data: Mapping[str, bytes]) -> None:
    """Let a zygote import the verified `_sdk` beside what any interpreter imports."""
    sys.meta_path.insert(0, VerifiedFinder(modules, data))


def install(
    frame: dict[str, Any], modules: Modules | None = None, data: Mapping[str, bytes] | None = None
) -> None:
    """Leave two ways to import: verified bytes, and what is allowed by name.

    `modules` and `data` are verified bytes that every call shares.
    """
    verified = VerifiedFinder(
        {**(modules or {}), **frame["modules"]}, {**(data or {}), **frame["data"]}
    )
    allowed = AllowedFinder(frame)
    sys.path[:] = [*_STDLIB, *frame["site_dirs"]]
    sys.meta_path[:] = [verified, allowed]
    sys.argv[:] = [frame["main"]]
    if "socket" in sys.modules:
        hook_network(frame)


def hook_network(frame: dict[str, Any]) -> None:
    """Put `_sdk.net` in the place of the connecting functions of `socket`.

    `broker_fd` is the inherited descriptor of the egress broker, missing without one: then every
    connection is denied.
    """
    from executors._sdk import net

    net.install(frame.get("broker_fd"))


class VerifiedFinder:
    """Imports modules out of bytes that the engine has verified; never touches the disk.

    `modules` maps a dotted name to (is_package, compiled code or source bytes); `data` maps
    `executors/<name>/<file>` to the bytes of files that are no code.
    """

    def __init__(
        self, modules: Mapping[str, tuple[bool, bytes, bool]], data: Mapping[str, bytes]
    ) -> None:
        self._modules = modules
        self._data = data

    def find_spec(self, name: str, path: object = None, target: object = None) -> Any:
        if name not in self._modules:
            return None
        is_package = self._modules[name][0]
        return ModuleSpec(name, self, origin=self._origin(name), is_package=is_package)  # type: ignore[arg-type]

    def create_module(self, spec: object) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        name = module.__name__
        _, body, compiled = self._modules[name]
        origin = self._origin(name)
        module.__file__ = origin
        code: CodeType = (
            marshal.loads(body)  # noqa: S302 - compiled by the engine
            if compiled
            else compile(body, origin, "exec", dont_inherit=True)
        )
        exec(code, module.__dict__)  # noqa: S102 - this is the import system

    def get_data(self, path: str) -> bytes:
        """For `pkgutil.get_data`: a file of the executor's own folder."""
        try:
            return self._data[path]
        except KeyError:
            raise FileNotFoundError(2, "No such file", path) from None

    def _origin(self, name: str) -> str:
        tail = "/__init__.py" if self._modules[name][0] else ".py"
        return name.replace(".", "/") + tail


class AllowedFinder:
    """The standard library, and the packages the manifest declares with what they need."""

    def __init__(self, frame: dict[str, Any]) -> None:
        self._packages = frozenset(frame["packages"])
        self._site_dirs = list(frame["site_dirs"])
        self._frame = frame
        self._stdlib = list(_STDLIB)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> Any:
        top = name.partition(".")[0]
        if top in sys.stdlib_module_names or top.startswith("_sysconfigdata"):
            if path is None:
                for importer in (BuiltinImporter, FrozenImporter):
                    spec = importer.find_spec(name, None, target)
                    if spec is not None:
                        return spec
                path = self._stdlib
            spec = PathFinder.find_spec(name, path, target)
            if name == "socket" and spec is not None and spec.loader is not None:
                spec.loader = SocketLoader(spec.loader, self._frame)  # type: ignore[assignment]
            return spec
        if top in self._packages:
            return PathFinder.find_spec(name, self._site_dirs if path is None else path, target)
        return None

    def find_distributions(self, *args: Any, **kwargs: Any) -> Any:
        """For `importlib.metadata.version(...)` of declared packages."""
        return PathFinder.find_distributions(*args, **kwargs)

    def invalidate_caches(self) -> None:
        PathFinder.invalidate_caches()


class SocketLoader:
    """Loads `socket` and puts the network hook in it, so that no call without network pays."""

    def __init__(self, loader: Any, frame: dict[str, Any]) -> None:
        self._loader = loader
        self._frame = frame

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: Any) -> Any:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        hook_network(self._frame)
