"""A memory that holds far more plans than it may: the start does not wait for them."""

from __future__ import annotations

from core.store import plan_cache

_INSERT = """INSERT INTO plan_cache (version, actor_id, lang, text, exact, plan_json,
    bindings_json, values_json, tools, families, changes, turn_id, learnt_at, request, edition,
    approved)
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :many)
SELECT 1, 'anna', 'it', 'che ore sono', 'e' || i, '{"steps":[{"tool":"get_now","args":{}}]}', '[]',
    '[]', 's', 'f', 0, 't' || i, i, 'che ore sono', 'of last year', i <= 2 FROM n"""


async def test_plans_of_an_earlier_edition_beyond_the_most_are_not_read_again(stores, monkeypatch):
    monkeypatch.setattr(plan_cache, "MAX_ROWS", 20)
    async with stores.memory.write() as tx:
        await tx.execute(_INSERT, {"many": 5000})

    async with stores.memory.write() as tx:
        read = await plan_cache.read_again(tx)

    async with stores.memory.read() as tx:
        kept = [row["id"] for row in await tx.fetch_all("SELECT id FROM plan_cache ORDER BY id")]
        row = await tx.fetch_one(
            "SELECT COUNT(*) AS n FROM plan_cache WHERE edition <> 'of last year'"
        )
    assert read == 20
    assert kept == [1, 2, *range(4983, 5001)], "the approved ones, then the newest"
    assert row is not None
    assert row["n"] == 20
