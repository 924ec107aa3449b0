"""Prompts render the same bytes, see only what they are given, and say what is missing."""

from __future__ import annotations

import pytest

from core.errors import TextMissing
from core.llm.prompts import Prompts


@pytest.fixture
def prompts(tmp_path):
    folder = tmp_path / "it" / "prompts"
    folder.mkdir(parents=True)
    texts = {
        "plan": "\n{# nota #}\nStrumenti:\n{% for t in tools %}\n- {{ t }}\n{% endfor %}\n\n",
        "plain": "{{ text }}",
        "broken": "{% for %}",
        "reaching": "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    }
    for name, text in texts.items():
        (folder / f"{name}.j2").write_text(text, encoding="utf-8")
    return Prompts(tmp_path)


def test_render_gives_the_same_bytes_each_time(prompts):
    first = prompts.render("plan", "it", tools=["à", "b"])

    assert first == "Strumenti:\n- à\n- b"
    assert prompts.render("plan", "it", tools=["à", "b"]) == first


def test_render_never_reads_a_value_as_a_template(prompts):
    assert prompts.render("plain", "it", text="{{ 7 * 7 }} & <b>") == "{{ 7 * 7 }} & <b>"


@pytest.mark.parametrize(
    ("role", "lang"), [("plain", "it"), ("none", "it"), ("plain", "en"), ("broken", "it")]
)
def test_render_when_something_is_missing_names_the_prompt(prompts, role, lang):
    with pytest.raises(TextMissing, match=f"{lang}/prompts/{role}"):
        prompts.render(role, lang)


def test_render_cannot_reach_out_of_the_sandbox(prompts):
    with pytest.raises(TextMissing):
        prompts.render("reaching", "it")
