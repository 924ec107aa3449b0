"""Names that read like other names."""

from __future__ import annotations

import pytest

from core.catalog.names import name_refusal, skeleton
from core.vocabulary import META_TOOLS, OBJECTS, QUALIFIERS, RECURRING_TOOLS, VERBS


@pytest.mark.parametrize(
    "name",
    [
        "find_fіles",  # Cyrillic i
        "fiпd_files",  # Cyrillic p
        "ｆind_files",  # full width
        "find_files\u200b",
        "find_fi\u0301les",
        "fınd_files",
        "Find_Files",
        "find-files",
        "find__files",
        "f1nd_files",
        "get_uris",
        "finaI_answer",
        "get_n0w",
        "_SDK",
        "find_fiｌes",
    ],
)
def test_name_refusal_when_it_reads_like_another_is_confusable(name: str):
    assert name_refusal(name) == "confusable"


@pytest.mark.parametrize(
    "name",
    ["final_answer", "list_recurring", "dance_files", "find", "files_find", "", ".git", "a b"],
)
def test_name_refusal_when_not_in_the_vocabulary_is_bad_name(name: str):
    assert name_refusal(name) == "bad_name"


def test_name_refusal_when_right_is_none():
    assert name_refusal("find_files") is None
    assert name_refusal("read_files_pdf") is None


@pytest.mark.parametrize(
    "words", [VERBS, OBJECTS, QUALIFIERS, META_TOOLS | RECURRING_TOOLS], ids=len
)
def test_skeleton_of_vocabulary_words_is_unique(words: frozenset[str]):
    """Otherwise two right names could be taken for one another."""
    assert len({skeleton(word) for word in words}) == len(words)
