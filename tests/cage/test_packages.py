"""Import names of declared packages and environment markers."""

from __future__ import annotations

import importlib.metadata as metadata
import re

import pytest
from packaging.markers import Marker

from core.execution.cage import packages


@pytest.mark.parametrize(
    ("marker", "expected"),
    [
        ("", True),
        ("python_version >= '3.11'", True),
        ('python_version < "3.11"', False),
        ("python_version < '3.2' or sys_platform == 'linux'", True),
        ("python_version < '3.2' and sys_platform == 'linux'", False),
        ("(python_version < '3.2') or (os_name == 'posix' and sys_platform != 'win32')", True),
        ("sys_platform in 'linux darwin'", True),
        ("sys_platform not in 'linux darwin'", False),
        ("'linux' == sys_platform", True),
        ("extra == 'socks'", False),
        ("implementation_name == 'cpython'", True),
        ("python_full_version >= '3.11.0' and python_version != '3.10.*'", True),
        ("python_version ~= '3.1'", True),
        ("nonsense ???", True),
    ],
)
def test_marker_is_read(marker: str, expected: bool):
    assert packages.marker_holds(marker, packages.environment("")) is expected


def test_extras_match_however_they_are_written():
    env = packages.environment("html_clean")

    assert packages.marker_holds('extra == "html-clean"', env)
    assert not packages.marker_holds('extra == "html5"', env)


def test_markers_of_everything_installed_read_as_the_reference_reads_them():
    seen = 0
    for distribution in metadata.distributions():
        for requirement in distribution.requires or ():
            marker = requirement.partition(";")[2].strip()
            if not marker:
                continue
            for extra in ("", *re.findall(r"""extra *== *['"]([^'"]+)""", marker)):
                reference = Marker(marker).evaluate({"extra": extra})
                assert packages.marker_holds(marker, packages.environment(extra)) == reference, (
                    marker
                )
                seen += 1
    print(f"{seen} markers compared")
    assert seen > 50


def test_resolve_gives_the_closure_and_one_folder():
    resolved = packages.resolve(("trafilatura",))

    assert {"trafilatura", "lxml", "lxml_html_clean", "charset_normalizer"} <= resolved.names
    assert not {"telegram", "httpx", "pytest", "core", "pip"} & resolved.names
    assert len(resolved.site_dirs) == 1


def test_resolve_of_nothing_is_nothing():
    assert packages.resolve(()) == packages.Packages()


def test_resolve_of_what_is_not_there_raises():
    with pytest.raises(packages.PackageMissing, match="no-such-package"):
        packages.resolve(("no-such-package>=1",))
