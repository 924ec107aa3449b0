"""What a person calls a file, and what nobody may touch, in whatever spelling."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from core.errors import CallRefused, ErrorCode
from core.execution.paths import Scope, canonical_path, check_scope, is_system_tree, scope_for
from core.messages import Actor, Role
from tests.support.house import house_settings


@pytest.fixture
def scope(tmp_path: Path) -> Scope:
    home = tmp_path / "person"
    (home / "notes").mkdir(parents=True)
    (home / ".ssh").mkdir()
    (home / ".ssh/id_rsa").write_text("key")
    (home / "notes/diary.md").write_text("words")
    (home / "notes/link").symlink_to(home / ".ssh")
    (tmp_path / "metnos/files/me").mkdir(parents=True)
    (tmp_path / "metnos/private").mkdir()
    return Scope(
        roots=(str(home / "notes"), str(tmp_path / "metnos/files/me")),
        home=str(home),
        product_home=str(tmp_path / "metnos"),
        workspace=str(tmp_path / "metnos/files/me"),
    )


@pytest.mark.parametrize(
    "spelt", ["diary.md", "notes/diary.md", "~/notes/diary.md", "./diary.md", "~/notes//diary.md",
              "~/notes/../notes/diary.md", "NOTES/diary.md"],
)  # fmt: skip
def test_canonical_path_of_every_spelling_is_the_one_file(scope: Scope, spelt: str) -> None:
    assert canonical_path(spelt, scope) == str(Path(scope.roots[0]) / "diary.md")


def test_canonical_path_of_a_file_url_is_its_path(scope: Scope) -> None:
    path = str(Path(scope.roots[0]) / "diary.md")

    assert canonical_path(f"file://{path}", scope) == path


def test_canonical_path_of_a_new_relative_name_lies_in_the_first_root(scope: Scope) -> None:
    assert canonical_path("new/page.html", scope) == str(Path(scope.roots[0]) / "new/page.html")


@pytest.mark.parametrize(
    "spelt",
    [
        "~/.ssh/id_rsa", "~/.ssh", "~/.SSH/id_rsa", "~/notes/../.ssh/id_rsa",
        "~/notes/link/id_rsa", "link/id_rsa", "~//.ssh///id_rsa", "~/%2essh/id_rsa",
        "~/.ssh%2fid_rsa", "~/./.ssh/./id_rsa",
        "file://~/.ssh/id_rsa", "file:///etc/shadow", "/etc/passwd", "/etc/../etc/shadow",
        "/etc/sudoers.d/x", "/etc/ssh/sshd_config", "/proc/self/environ", "/proc/1/mem",
        "/sys/kernel", "/boot/vmlinuz", "/dev/sda1", "/dev/nvme0n1", "/%65tc/shadow",
        "~/.aws/credentials", "~/.config/thing/credentials.env", "~/.gnupg/secring.gpg",
    ],
)  # fmt: skip
def test_canonical_path_of_a_forbidden_place_is_refused(scope: Scope, spelt: str) -> None:
    with pytest.raises(CallRefused) as refused:
        canonical_path(spelt, scope)

    assert refused.value.code is ErrorCode.FORBIDDEN_PATH


def test_canonical_path_through_proc_self_root_is_refused(scope: Scope) -> None:
    with pytest.raises(CallRefused) as refused:
        canonical_path(f"/proc/self/root{scope.home}/.ssh/id_rsa", scope)

    assert refused.value.code is ErrorCode.FORBIDDEN_PATH


def test_canonical_path_of_another_users_home_is_refused(scope: Scope) -> None:
    name = pwd.getpwuid(os.getuid()).pw_name

    with pytest.raises(CallRefused) as refused:
        canonical_path(f"~{name}/.ssh/id_rsa", scope)

    assert refused.value.code is ErrorCode.FORBIDDEN_PATH
    with pytest.raises(CallRefused) as refused:
        canonical_path(f"~{name}/anything", scope)
    assert refused.value.code is ErrorCode.OUT_OF_SCOPE


@pytest.mark.parametrize("spelt", ["a\x00b", "a\u202eb", "a\u200bb", "\ud800", "a\nb", "x" * 5000])
def test_canonical_path_with_invisible_characters_is_refused(scope: Scope, spelt: str) -> None:
    with pytest.raises(CallRefused) as refused:
        canonical_path(spelt, scope)

    assert refused.value.code is ErrorCode.BAD_TEXT


@pytest.mark.parametrize(
    "name",
    [
        "tail ", " head", "line\nbreak.txt", "tab\t.txt", "soft\u00adhyphen.txt",
        "\U0001f468\u200d\U0001f469\u200d\U0001f467.jpg", "turned\u202egnp.exe",
    ],
)  # fmt: skip
def test_canonical_path_of_a_file_that_is_really_called_so_is_that_file(
    scope: Scope, name: str
) -> None:
    """A step finds such names, and the one without the sign may be somebody else's."""
    path = Path(scope.roots[0]) / name
    path.write_text("this one")
    path.with_name(name.strip()).write_text("not that one" if name != name.strip() else "this one")

    assert canonical_path(str(path), scope) == str(path)


def test_canonical_path_with_outer_space_that_names_nothing_is_taken_without(scope: Scope) -> None:
    assert canonical_path(" ~/notes/diary.md ", scope).endswith("notes/diary.md")
    path = f"{scope.roots[0]}/diary.md"
    assert canonical_path(f"{path} ", scope) == path


@pytest.mark.parametrize(
    "inside",
    [
        "private/metnos.db",
        "engine.lock",
        "turns/x.jsonl",
        "executors/read_files/main.py",
        "files/other/secret",
    ],
)
def test_canonical_path_into_the_products_home_is_refused(scope: Scope, inside: str) -> None:
    with pytest.raises(CallRefused) as refused:
        canonical_path(f"{scope.product_home}/{inside}", scope)

    assert refused.value.code is ErrorCode.FORBIDDEN_PATH


def test_check_scope_outside_every_root_names_the_roots(scope: Scope) -> None:
    with pytest.raises(CallRefused) as refused:
        check_scope("/srv/elsewhere", scope)

    assert refused.value.code is ErrorCode.OUT_OF_SCOPE
    assert refused.value.params["roots"] == "notes"


def test_check_scope_is_not_fooled_by_a_common_prefix(scope: Scope) -> None:
    with pytest.raises(CallRefused):
        check_scope(scope.roots[0] + "-evil/x", scope)


def test_scope_for_a_guest_is_the_workspace_alone(tmp_path: Path) -> None:
    settings = house_settings(tmp_path)

    scope = scope_for(Actor("g1", Role.GUEST, "guest_1"), settings)

    assert scope.roots == (str(settings.metnos_home / "files/g1"),)
    assert scope.home == scope.roots[0]
    assert Path(scope.roots[0]).stat().st_mode & 0o777 == 0o700


def test_scope_for_the_host_holds_the_chosen_roots_and_the_workspace(tmp_path: Path) -> None:
    settings = house_settings(tmp_path)

    scope = scope_for(Actor("h1", Role.HOST, "host"), settings)

    assert scope.roots == (str(tmp_path / "notes"), str(settings.metnos_home / "files/h1"))


@pytest.mark.parametrize("path", ["/etc/hosts", "/usr/bin/x", "/var/lib/x", "/lib/x"])
def test_is_system_tree_knows_where_only_the_system_writes(path: str) -> None:
    assert is_system_tree(path)
    assert not is_system_tree("/srv/nas/x")


@pytest.mark.parametrize(
    ("folders", "config", "expected"),
    [
        (["Documents"], None, ["Documents"]),
        (["Documenti"], None, ["Documenti"]),
        (["Documents", "Dokumente"], 'XDG_DOCUMENTS_DIR="$HOME/Dokumente"', ["Dokumente"]),
        (["Documents"], 'XDG_DOCUMENTS_DIR="$HOME/Away"', ["Documents"]),
        (["Documents"], 'XDG_DOCUMENTS_DIR="$HOME/"', ["Documents"]),
        ([], None, []),
    ],
)
def test_scope_for_the_host_defaults_to_the_documents_by_their_local_name(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    folders: list[str],
    config: str | None,
    expected: list[str],
) -> None:
    person = tmp_path / "person"
    (person / ".config").mkdir(parents=True)
    for name in folders:
        (person / name).mkdir()
    if config is not None:
        (person / ".config/user-dirs.dirs").write_text(f"# comment\n{config}\n")
    monkeypatch.setenv("HOME", str(person))
    settings = house_settings(tmp_path, metnos_files_roots=None)

    scope = scope_for(Actor("h1", Role.HOST, "host"), settings)

    workspace = str(settings.metnos_home / "files/h1")
    assert scope.roots == (*(str(person / name) for name in expected), workspace)
    assert scope.home == str(person)
