"""Another program empties the database of the running bot: it stops and says how to go on."""

from __future__ import annotations

import os

from tests.support.scripted_model import Rule
from tests.support.world import open_world


def test_bot_whose_database_is_emptied_stops_with_a_word(tmp_path):
    with open_world(tmp_path, [Rule(user="^ciao", text="Ciao a te.")]) as world:
        world.telegram.start_bot()
        anna = world.host()
        database = world.home / "private" / "metnos.db"

        os.truncate(database, 0)
        world.telegram.say(anna, "ciao")
        process = world.telegram.proc
        world.wait_for(lambda: process.poll() is not None, what="the end of the bot")

        assert process.returncode == 1
        assert "L'archivio è danneggiato: non vado oltre." in world.telegram.tail()
        assert "Traceback" not in world.telegram.tail()
