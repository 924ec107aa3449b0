"""What `metnos doctor` asks of the embedder: one vector, and how long it took."""

from __future__ import annotations

import time

from bot.cli.checks import Doctor, Finding


async def check_embedder(doctor: Doctor) -> Finding | None:
    """None: memory is off, and nobody needs one."""
    from core.levels.nearness import PATIENCE_S, close, embedded
    from core.llm.embedder import E5Embedder, EmbedderDown, embedder_of

    settings = doctor.settings
    if not settings.metnos_memory:
        return None
    embedder = embedder_of(settings)
    if embedder is None:
        return doctor.info("embedder", "embedder_off")
    try:
        if not embedder.is_light:
            await embedded(embedder, ["che ore sono"])
        began = time.monotonic()
        await embedded(embedder, ["what time is it"])
        spent = time.monotonic() - began
    except EmbedderDown as exc:
        mend = f"curl -sS {settings.metnos_embed_base_url}"
        if isinstance(embedder, E5Embedder):
            mend = "pip install --require-hashes -r requirements/embed.txt"
        return doctor.fault(
            "embedder", "embedder_down", mend, name=embedder.name, detail=exc.detail
        )
    finally:
        await close(embedder)
    if spent > PATIENCE_S:
        seconds = round(spent, 1)
        return doctor.info("embedder", "embedder_slow", name=embedder.name, seconds=seconds)
    return doctor.good("embedder", "embedder_good", name=embedder.name, ms=round(1000 * spent, 1))
