"""Fingerprints of files, and files that are equal whatever they are called."""

from __future__ import annotations

import hashlib
import os

import pytest

from executors._sdk.digest import BLOCK, digest_of
from tests.executors.file_cases import run, run_caged


def sums(root, **args):
    return run("compute_signatures", args, root)


@pytest.mark.parametrize("algorithm", ["sha256", "sha512", "sha1", "md5"])
@pytest.mark.parametrize("size", [0, 1, BLOCK - 1, BLOCK, 3 * BLOCK + 7])
def test_digest_is_that_of_all_bytes(tmp_path, algorithm, size):
    data = bytes(range(256)) * (size // 256 + 1)
    (tmp_path / "a.bin").write_bytes(data[:size])

    seen = sums(tmp_path, paths=[str(tmp_path / "a.bin")], algorithm=algorithm)

    assert seen["entries"][0][algorithm] == hashlib.new(algorithm, data[:size]).hexdigest()
    assert seen["entries"][0]["size"] == size
    assert seen["metadata"]["total_bytes"] == size


def test_digest_of_a_long_file_tells_how_far_it_is(tmp_path):
    path = tmp_path / "lungo"
    with path.open("wb") as file:
        file.truncate(3 << 27)
    heard: list[int] = []

    with path.open("rb") as file:
        digest_of(file.fileno(), told=heard.append)

    assert heard == [1 << 27, 2 << 27, 3 << 27]


def test_signatures_keep_what_the_search_knew_and_name_what_failed(tmp_path):
    (tmp_path / "a.pdf").write_bytes(b"uno")
    found = [
        {"ok": True, "path": str(tmp_path / "a.pdf"), "name": "a.pdf", "ext": "pdf", "size": 99},
        {"ok": True, "path": str(tmp_path / "via.pdf")},
    ]

    seen = sums(tmp_path, entries=found)

    first, second = seen["entries"]
    assert seen["ok"]
    assert (first["ext"], first["size"]) == ("pdf", 3)  # as it is now
    assert first["modified"].endswith("+00:00")
    assert second["error"]["code"] == "not_found"
    assert seen["metadata"] | {"total_bytes": 3, "failed_count": 1} == seen["metadata"]


def test_signatures_of_many_files_in_the_cage(tmp_path):
    for number in range(30):
        (tmp_path / f"{number}.txt").write_text(str(number), encoding="utf-8")
    paths = [str(path) for path in tmp_path.iterdir()]

    seen = run_caged("compute_signatures", {"paths": paths}, tmp_path)

    assert seen["metadata"]["ok_count"] == 30


# -- equal files ----------------------------------------------------------------------------------


@pytest.fixture
def house(tmp_path):
    for at, (name, text) in enumerate(
        {
            "Preventivi/tetto.pdf": "tetto",
            "Preventivi/bagno.pdf": "bagno",
            "Preventivi/vecchi/tetto-2024.pdf": "tetto",
            "Preventivi/vuoto.txt": "",
            "Contratti/firmato.pdf": "tetto",
            "Contratti/bagno.pdf": "bagno",
            "Contratti/cucina.pdf": "cucin",
            "Contratti/vuoto.txt": "",
            "Contratti/.nascosto.pdf": "tetto",
            ".metnos-trash/t/tetto.pdf": "tetto",
        }.items()
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        os.utime(path, (at + 1000, at + 1000))
    (tmp_path / "Contratti/link.pdf").symlink_to(tmp_path / "Preventivi/tetto.pdf")
    return tmp_path


def pairs(house, **args):
    args["base_path"] = str(house / args.get("base_path", ""))
    args["other_paths"] = [str(house / path) for path in args.get("other_paths", ())]
    seen = run("find_files_hash", args, house)
    assert seen["ok"], seen
    found = [
        tuple(os.path.relpath(entry[key], house) for key in ("path", "same_as"))
        for entry in seen["entries"]
    ]
    return found, seen["metadata"]


def test_equal_files_across_two_folders_under_different_names(house):
    found, about = pairs(
        house, base_path="Preventivi", other_paths=["Contratti"], different_names=True
    )

    assert found == [("Contratti/firmato.pdf", "Preventivi/tetto.pdf")]
    assert about["groups"] == 1
    assert about["compared"] == 6


def test_equal_files_across_two_folders_whatever_their_names(house):
    found, _ = pairs(house, base_path="Preventivi", other_paths=["Contratti"])

    assert found == [
        ("Contratti/bagno.pdf", "Preventivi/bagno.pdf"),
        ("Contratti/firmato.pdf", "Preventivi/tetto.pdf"),
    ]


def test_equal_files_in_one_tree_leave_the_oldest_as_the_original(house):
    found, about = pairs(house)

    assert found == [
        ("Contratti/bagno.pdf", "Preventivi/bagno.pdf"),
        ("Contratti/firmato.pdf", "Preventivi/tetto.pdf"),
        ("Preventivi/vecchi/tetto-2024.pdf", "Preventivi/tetto.pdf"),
    ]
    assert about["total_bytes"] == 15


def test_equal_files_by_pattern_and_no_more_than_asked(house):
    assert pairs(house, patterns=["*.txt"])[0] == []
    found, about = pairs(house, max_results=1)
    assert (len(found), about["available"], about["truncated"]) == (1, 3, True)


def test_equal_beginnings_are_not_equal_files(tmp_path):
    same = b"x" * 70_000
    (tmp_path / "a").write_bytes(same + b"1")
    (tmp_path / "b").write_bytes(same + b"2")
    (tmp_path / "c").write_bytes(same + b"1")

    assert pairs(tmp_path)[0] == [("c", "a")]


def test_second_name_of_a_file_is_no_copy_of_it(tmp_path):
    (tmp_path / "a").write_text("uno", encoding="utf-8")
    (tmp_path / "b").hardlink_to(tmp_path / "a")

    assert pairs(tmp_path)[0] == []


@pytest.mark.parametrize("other", ["", "Preventivi", "Preventivi/vecchi"])
def test_folder_is_not_compared_with_itself(house, other):
    seen = run(
        "find_files_hash",
        {"base_path": str(house / "Preventivi"), "other_paths": [str(house / other)]},
        house,
    )

    assert seen["error"]["code"] == "invalid_args"
