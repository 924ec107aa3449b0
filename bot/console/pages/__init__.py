"""Every page there is, in the order of the menu. A module per subject; each names its own."""

from bot.console.pages import actors, dialogs, effects, executors, overview, praxis, turns
from bot.console.ports import Page

ALL: tuple[Page, ...] = (
    *overview.PAGES,
    *praxis.PAGES,
    *turns.PAGES,
    *dialogs.PAGES,
    *effects.PAGES,
    *actors.PAGES,
    *executors.PAGES,
)
