"""Every page there is, in the order of the menu. A module per subject; each names its own."""

from bot.console.pages import overview, praxis
from bot.console.ports import Page

ALL: tuple[Page, ...] = (*overview.PAGES, *praxis.PAGES)
