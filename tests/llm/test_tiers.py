"""Tiers out of settings, who stands in for whom, fallbacks, and models by their names."""

from __future__ import annotations

import pytest

from core.config import Settings
from core.errors import ErrorCode, MetnosError, ModelMissing, ModelRefused, ModelUnreachable
from core.llm.local_server import LocalServer
from core.llm.tiers import ROLES, Tiers, needs_bundled, traits
from tests.support.model_servers import ask, sends, serving, whole

NOWHERE = "http://127.0.0.1:1/v1"


def _settings(**values) -> Settings:
    clean = {"metnos_llm_base_url": None, "metnos_llm_api_key": None, **values}
    return Settings(_env_file=None, **clean)  # type: ignore[call-arg]


def test_environment_alone_serves_every_role_but_the_frontier():
    tiers = Tiers.from_settings(_settings(metnos_llm_base_url=NOWHERE, metnos_llm_model="m"))

    assert {role: tiers.tier_of(role) for role in ROLES if role != "plan_online"} == dict.fromkeys(
        ("plan", "judge", "filler", "read", "prose", "translate"), "fast"
    )
    with pytest.raises(ModelMissing, match=r"tiers\.frontier") as caught:
        tiers.for_role("plan_online")
    assert caught.value.code is ErrorCode.MODEL_MISSING


def test_nothing_set_says_which_command_helps():
    tiers = Tiers.from_settings(_settings())

    assert not tiers.configured
    with pytest.raises(MetnosError, match="metnos model pull"):
        tiers.for_role("plan")


@pytest.mark.parametrize(
    ("present", "plan", "prose", "filler"),
    [
        ("fast wise", "fast", "wise", "fast"),
        ("fast middle", "middle", "middle", "fast"),
        ("wise", "wise", "wise", "wise"),
        ("middle frontier", "middle", "middle", "middle"),
    ],
)
def test_missing_tiers_are_stood_in_for(present, plan, prose, filler):
    table = {name: {"base_url": NOWHERE, "model": name} for name in present.split()}
    tiers = Tiers.from_settings(_settings(tiers=table))

    assert [tiers.tier_of(role) for role in ("plan", "prose", "filler")] == [plan, prose, filler]


def test_environment_wins_over_the_table_and_never_sends_its_key_elsewhere():
    table = {"fast": {"base_url": "https://a.example", "api_key": "ka", "max_tokens": 7}}
    tiers = Tiers.from_settings(_settings(metnos_llm_base_url=NOWHERE, tiers=table))

    fast = tiers.settings_of("filler")
    assert (fast.base_url, fast.api_key, fast.max_tokens) == (NOWHERE, None, 7)


def test_a_key_alone_reaches_its_provider():
    tiers = Tiers.from_settings(
        _settings(metnos_llm_provider="anthropic", metnos_llm_api_key="k", metnos_llm_model="c")
    )

    assert tiers.settings_of("plan").provider == "anthropic"
    assert tiers.settings_of("plan").base_url.startswith("https://")


async def test_the_bundled_model_serves_only_where_nothing_else_is_set(tmp_path):
    bundled = LocalServer(tmp_path / "qwen2.5-1.5b.gguf", log_file=tmp_path / "log")
    only_frontier = _settings(tiers={"frontier": {"base_url": "https://f.example"}})
    own = _settings(metnos_llm_base_url=NOWHERE, metnos_llm_model="own")

    assert needs_bundled(_settings())
    assert needs_bundled(only_frontier)
    assert not needs_bundled(own)
    assert Tiers.from_settings(own, bundled=bundled).settings_of("plan").model == "own"
    for settings in (_settings(), only_frontier):
        tiers = Tiers.from_settings(settings, bundled=bundled)
        assert (await tiers.traits_of("plan")).engine == "metis"
        with pytest.raises(ModelMissing, match=r"model pull|pip install"):
            await tiers.for_role("plan").complete(ask())


async def test_fallback_answers_when_the_tier_cannot_be_reached():
    async with serving(sends(whole("dal ripiego"))) as served:
        table = {
            "fast": {"base_url": NOWHERE, "retries": 0, "fallback": ["frontier", "wise"]},
            "wise": {"base_url": served.url, "model": "m"},
        }
        tiers = Tiers.from_settings(_settings(tiers=table))
        reply = await tiers.for_role("filler").complete(ask())
        await tiers.close()
        await tiers.close()

    assert reply.text == "dal ripiego"


async def test_fallback_is_not_asked_when_the_tier_refuses():
    async with serving(sends("{}", status=401)) as served:
        table = {
            "fast": {"base_url": served.url, "model": "m", "fallback": ["wise"]},
            "wise": {"base_url": served.url, "model": "m"},
        }
        tiers = Tiers.from_settings(_settings(tiers=table))
        with pytest.raises(ModelRefused):
            await tiers.for_role("filler").complete(ask())
        await tiers.close()

    assert len(served.bodies) == 1


async def test_last_of_the_order_raises_its_own_error():
    table = {
        "fast": {"base_url": NOWHERE, "retries": 0, "fallback": ["wise"]},
        "wise": {"base_url": NOWHERE, "retries": 0},
    }
    tiers = Tiers.from_settings(_settings(tiers=table))

    with pytest.raises(ModelUnreachable):
        await tiers.for_role("filler").complete(ask())
    await tiers.close()


async def test_traits_of_asks_the_server_when_the_name_is_left_out():
    listed = sends({"data": [{"id": "Qwen/Qwen2.5-Coder-1.5B-Instruct"}]})
    async with serving(listed) as served:
        tiers = Tiers.from_settings(_settings(metnos_llm_base_url=served.url))
        found = await tiers.traits_of("plan")
        await tiers.close()

    assert (found.family, found.engine, found.local) == ("qwen2.5-coder", "metis", True)


@pytest.mark.parametrize(
    ("model", "family", "engine"),
    [
        ("qwen2.5-coder-1.5b-instruct-q4_k_m.gguf", "qwen2.5-coder", "metis"),
        ("llama3.2:3b", "llama", "metis"),
        ("meta-llama/Llama-3.3-70B-Instruct", "llama", "simple"),
        ("qwen3:30b-a3b", "qwen", "simple"),
        ("qwen3:0.6b", "qwen", "metis"),
        ("gemma-3-270m-it", "gemma", "metis"),
        ("phi-4-mini-instruct", "phi", "metis"),
        ("mixtral:8x7b", "mistral", "simple"),
        ("claude-sonnet-4-5", "claude", "simple"),
        ("gpt-4o-mini", "openai", "simple"),
        ("o3", "openai", "simple"),
        ("DeepSeek-R1-Distill-Qwen-1.5B", "deepseek-distill", "metis"),
        ("somebody-made-this", "unknown", "simple"),
        ("", "unknown", "simple"),
    ],
)
def test_traits_follow_family_and_size(model, family, engine):
    found = traits(model, local=True)

    assert (found.family, found.engine, found.k_max) == (family, engine, 12)


def test_traits_engine_of_the_settings_wins_and_hosted_models_see_more_tools():
    assert traits("gpt-5", local=False, engine="metis").engine == "metis"
    assert traits("gpt-5", local=False).k_max == 40


async def test_person_says_how_many_tools_a_model_is_shown():
    settings = _settings(metnos_llm_base_url=NOWHERE, metnos_llm_model="big", metnos_most_tools=30)
    assert (await Tiers.from_settings(settings).traits_of("plan")).k_max == 30
