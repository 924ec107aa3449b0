"""What an executor may import. Runs in the child; `bootstrap` receives this module as code.

A contract and no wall: it keeps honest programs from leaning on what their manifest does not say.
"""

from __future__ import annotations

import marshal
import sys
from _frozen_importlib import BuiltinImporter, FrozenImporter, ModuleSpec
from _frozen_importlib_external import PathFinder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from types import CodeType, ModuleType
    from typing import Any


def install(frame: dict[str, Any]) -> None:
    """Leave two ways to import: verified bytes, and what is allowed by name."""
    verified = VerifiedFinder(frame["modules"], frame["data"])
    allowed = AllowedFinder(frame["packages"], frame["site_dirs"], frame["broker_fd"])
    sys.path.extend(frame["site_dirs"])
    sys.meta_path[:] = [verified, allowed]
    sys.argv[:] = [frame["main"]]


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

    def __init__(
        self, packages: Iterable[str], site_dirs: Sequence[str], broker_fd: int | None
    ) -> None:
        self._packages = frozenset(packages)
        self._site_dirs = list(site_dirs)
        self._broker_fd = broker_fd
        self._stdlib = list(sys.path)

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
                spec.loader = SocketLoader(spec.loader, self._broker_fd)  # type: ignore[assignment]
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

    def __init__(self, loader: Any, broker_fd: int | None) -> None:
        self._loader = loader
        self._broker_fd = broker_fd

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: Any) -> Any:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        from executors._sdk import net

        net.install(self._broker_fd)
