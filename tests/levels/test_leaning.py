"""Which requests can only be understood after the one before: memory keeps out of those."""

from __future__ import annotations

import pytest

from core.levels.reuse import request_refusal

LEANS = """
cancellalo
aprilo e leggilo
leggi quello
quelli
e i pdf?
mostramene altri e ordina questi
fallo di nuovo
delete it
read them
open it and read it
show me that
zip that and send it
put a.txt into it
do the same for B
and the pdfs?
""".strip().splitlines()
STANDS = """
trova a.txt e cancellalo
elenca i file che non sono pdf
tieni solo quelli che contengono x
confronta A e B e mostra i file che hanno lo stesso contenuto
leggimi il file modificato più di recente
i file locali
find a.txt and delete it
find the file a.txt and read it
what time is it?
leggi https://www.giornale.it/notizie
manda una mail a marta@posta.it
read notes/this/again.md
what does www.posta.it say?
list the files that are not pdfs
read the file that was changed last
keep only those that contain x
compare A and B and show the files that have the same content
""".strip().splitlines()


@pytest.mark.parametrize(
    ("text", "leans"), [*((t, True) for t in LEANS), *((t, False) for t in STANDS)]
)
def test_request_leans_on_the_one_before(text: str, leans: bool):
    refused = request_refusal(text, quoted=None, in_conversation=True)

    assert (refused == "leans_on_conversation") is leans
    assert request_refusal(text, quoted=None, in_conversation=False) is None
