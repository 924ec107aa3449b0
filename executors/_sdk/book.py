"""The contacts of a person: those of their accounts, or files of their own where they have none.

A contact is known outside as `ACCOUNT|PLACE`: its path on the server, or the file and its number
there (the account is then empty).
"""

from __future__ import annotations

from executors._sdk import cards
from executors._sdk.dav import Dav
from executors._sdk.dav_parts import BOOKS, PictureSieve
from executors._sdk.encodings import lossless
from executors._sdk.files import locate, look, opened
from executors._sdk.result import Failure, from_exception, item
from executors._sdk.writing import chunks_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from executors._sdk.call import Call
    from executors._sdk.cards import Card

FILES = ("Contatti.vcf", "Contacts.vcf", "contatti.vcf", "contacts.vcf", "Rubrica.vcf",
         "rubrica.vcf")  # fmt: skip
MAX_FILE = 64 << 20
MOST_CARDS = 20_000


class Contacts:
    """All contacts that a call may look at, each with its id, read one by one.

    `unreached` names the accounts that did not answer once `blocks` is through.
    """

    def __init__(self, call: Call) -> None:
        self._call = call
        self.unreached: list[str] = []
        self.truncated = False

    def blocks(self) -> Iterator[tuple[str, str, str]]:
        """(id, account, card as it is written). Raises `Failure` when nothing could be read, and
        needs_credentials when there is neither an account nor a file."""
        call = self._call
        if not call.accounts:
            yield from self._of_files()
            return
        last: Failure | None = None
        for number, account in enumerate(call.accounts, 1):
            name = str(account["name"])
            try:
                yield from self._of_account(account, name)
            except (Failure, OSError) as exc:
                failure = from_exception(exc)
                if failure is None:
                    raise
                last, self.unreached = failure, [*self.unreached, name]
            if len(call.accounts) > 1:
                call.progress(number, len(call.accounts))
        if last is not None and len(self.unreached) == len(call.accounts):
            raise last

    def _of_account(self, account: dict[str, Any], name: str) -> Iterator[tuple[str, str, str]]:
        seen = 0
        with Dav(self._call, account, BOOKS) as dav:
            for book in dav.collections():
                for resource in dav.cards(book):
                    for block in cards.blocks_of(resource.text)[:1]:
                        seen += 1
                        if seen > MOST_CARDS:
                            self.truncated = True
                            return
                        yield f"{name}|{resource.href}", name, block

    def _of_files(self) -> Iterator[tuple[str, str, str]]:
        found = False
        for root in self._call.roots:
            for file in FILES:
                place = locate(self._call, f"{root.rstrip('/')}/{file}")
                if look(place) is None:
                    continue
                found = True
                sieve = PictureSieve()
                with opened(place) as (fd, info):
                    if info.st_size > MAX_FILE:
                        raise Failure("too_large", "more than 64 MB", path=place.path,
                                      limit=MAX_FILE)  # fmt: skip
                    data = b"".join([*map(sieve.feed, chunks_of(fd)), sieve.end()])
                text = lossless(data)
                for number, block in enumerate(cards.blocks_of(text)[:MOST_CARDS], 1):
                    yield f"|{file}#{number}", "", block
        if not found:
            raise Failure("needs_credentials", "there are no contacts", kind="contacts")


def entry_of(key: str, account: str, card: Card) -> dict[str, Any]:
    """A contact as an entry: `id`, `name`, `label` (with what tells it from its namesakes),
    `email`, `phone` (the preferred ones), `emails`, `phones` (all), `org`, `title`, `place`,
    `birthday`, `account`."""
    emails = [value for _, value in card.emails]
    fields: dict[str, Any] = {
        "email": emails[0] if emails else "",
        "phone": card.phones[0][1] if card.phones else "",
        "emails": ", ".join(emails) if len(emails) > 1 else "",
        "phones": ", ".join(v for _, v in card.phones) if len(card.phones) > 1 else "",
        "org": card.org,
        "title": card.title,
        "place": card.place,
        "birthday": card.birthday,
        "account": account,
    }
    detail = card.detail
    label = f"{card.name} ({detail})" if detail else card.name
    return item(
        id=key, name=card.name, label=label, **{k: value for k, value in fields.items() if value}
    )
