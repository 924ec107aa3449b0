"""Every button that can stand under an answer or on a card, and what it does."""

from __future__ import annotations

from core.catalog.loader import CatalogLoader
from core.clock import Clock
from core.i18n import Texts
from core.store.forgetting import Forgetting
from core.store.stores import Stores
from core.turn_accounts import CONNECT, Connect
from core.turn_actions import Handler, TurnActions
from core.turn_again import AskAgain
from core.turn_corrected import CORRECT, Corrections
from core.turn_ends import TurnEnds
from core.turn_forget import COMMAND as FORGET
from core.turn_forget import Forget
from core.turn_memory import TurnMemory
from core.turn_more import press_more
from core.turn_offers import AGAIN, MORE, UNDO
from core.turn_praxis import COMMAND, Praxis
from core.turn_restart import AfterRestart
from core.turn_setup import TurnSetup
from core.turn_sharing import Sharing
from core.turn_unanswered import Unanswered
from core.turn_undo import press_undo
from core.turn_visitors import AtTheDoor
from core.turn_voting import Votes


def buttons(
    stores: Stores,
    clock: Clock,
    texts: Texts,
    ends: TurnEnds,
    setup: TurnSetup,
    late: Unanswered,
    memory: TurnMemory,
    loader: CatalogLoader,
    forgetting: Forgetting,
) -> TurnActions:
    """What presses are taken by. A new button is an `Offer` at the end of a turn and a handler
    here."""
    sharing = Sharing(stores, clock, texts, setup.settings)
    praxis, forget = Praxis(stores, clock, texts, loader), Forget(stores, texts, forgetting)
    handlers: dict[str, Handler] = {
        UNDO: press_undo,
        MORE: press_more,
        AGAIN: AskAgain(stores).press,
        CONNECT: Connect(stores).press,
        CORRECT: Corrections(stores, clock, texts, setup).press,
        **Votes(stores, clock, texts, loader, memory).handlers,
        **praxis.handlers,
        **sharing.handlers,
        **forget.handlers,
        **AfterRestart(stores, clock, texts).handlers,
        **AtTheDoor(stores, clock, texts).handlers,
    }
    return TurnActions(
        stores=stores,
        clock=clock,
        texts=texts,
        ends=ends,
        setup=setup,
        late=late,
        handlers=handlers,
        commands={COMMAND: praxis.say, FORGET: forget.say},
    )
