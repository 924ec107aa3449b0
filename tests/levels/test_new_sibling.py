"""A new program that might serve better makes what was remembered a miss, once, and says why."""

from __future__ import annotations

from pathlib import Path

from core.store import plan_cache
from tests.levels.test_fastpath import CLOCK, kept
from tests.support.executors import manifest_toml, signed_executor
from tests.support.house import ask, house_settings, open_scripted

CODE = "def run(call):\n    return {'ok': True, 'content': 'mezzogiorno'}\n"


async def test_new_sibling_makes_a_plan_a_miss_once_with_its_reason(tmp_path: Path):
    async with open_scripted(tmp_path, [CLOCK], metnos_engine="metis") as (house, model):
        await ask(house, "che ore sono?")
        await ask(house, "che ore sono?")
        assert len(model.asked) == 1
        [row] = await kept(house)

        signed_executor(house_settings(tmp_path), manifest_toml("read_now"), CODE)
        again = await ask(house, "che ore sono?")

        assert len(model.asked) == 2
        assert "⚡" not in again.reply.plain
        async with house.stores.memory.read() as tx:
            old = await plan_cache.get(tx, row.id)
        assert old is not None
        assert (old.why, old.lesson.tools) == ("new_sibling", "")
        served = await ask(house, "che ore sono?")
        assert len(model.asked) == 2
        assert served.reply.plain.endswith("⚡")
