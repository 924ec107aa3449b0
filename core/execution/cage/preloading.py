"""What zygotes import ahead of calls: the light one always the same, the heavy one what is asked.

Only names: what is imported runs in the zygote, never here.
"""

from __future__ import annotations

from functools import lru_cache

from core.execution.cage.frame import imports_of
from core.execution.cage.packages import PackageMissing, Packages, resolve
from core.execution.cage.program import Program, SdkFiles

LIGHT = ("httpx", "tzdata")
PRELOADED = tuple(
    """base64 binascii bisect codecs collections concurrent.futures.thread contextlib csv
    ctypes datetime decimal difflib email.message encodings.idna fnmatch hashlib html html.entities
    io json math os pathlib random re resource socket ssl stat statistics string struct tempfile
    textwrap threading time unicodedata urllib.parse zlib zoneinfo
    httpx httpcore h11 certifi idna""".split()
)


@lru_cache(maxsize=1)
def light_packages() -> Packages:
    """What the light zygote has imported; what is not installed is left out."""
    names: frozenset[str] = frozenset()
    site_dirs: dict[str, None] = {}
    for require in LIGHT:
        try:
            found = resolve((require,))
        except PackageMissing:
            continue
        names |= found.names
        site_dirs.update(dict.fromkeys(found.site_dirs))
    return Packages(names, tuple(site_dirs))


def warm_names(executor: Program, sdk: SdkFiles, packages: Packages) -> list[str]:
    """The modules of declared packages that an executor or `_sdk` imports anywhere."""
    sources = [*executor.files.items(), *sdk.files.items()]
    return sorted(
        name
        for path, body in sources
        if path.endswith(".py")
        for name in imports_of(bytes(body))
        if name.partition(".")[0] in packages.names
    )
