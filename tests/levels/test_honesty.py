"""Sentences that claim a change without a step are dropped; the others stay (C7)."""

from __future__ import annotations

import pytest

from core.levels.honesty import LATER, check_claims, names_change

# (sentence, language, verbs that were done, whether it must be dropped)
CLAIMS = [
    # Italian: claims without a step
    ("Ho scritto il file note.md.", "it", (), True),
    ("Ho salvato la pagina in ~/notes/p.html.", "it", (), True),
    ("Il file è stato salvato.", "it", (), True),
    ("Ho già cancellato i tre file.", "it", (), True),
    ("I file sono stati eliminati con successo.", "it", (), True),
    ("Fatto! Spostato tutto in archivio.", "it", (), True),
    ("Ho spostato le foto nella cartella Estate.", "it", (), True),
    ("La mail è stata inviata ad Anna.", "it", (), True),
    ("Ho mandato il messaggio.", "it", (), True),
    ("L'ho cancellato.", "it", (), True),
    ("Li ho spostati tutti.", "it", (), True),
    ("Ho creato la cartella Tasse.", "it", (), True),
    ("Ho aggiunto il latte alla lista.", "it", (), True),
    ("Evento creato correttamente.", "it", (), True),
    ("Ho rinominato foto.jpg in mare.jpg.", "it", (), True),
    ("Ho aggiornato il foglio.", "it", (), True),
    ("Ho prenotato il tavolo per due.", "it", (), True),
    ("La cartella è stata compressa.", "it", (), True),
    # Italian: claims that a step backs
    ("Ho scritto il file note.md.", "it", ("write",), False),
    ("Ho salvato la pagina in ~/notes/p.html.", "it", ("write",), False),
    ("Ho creato il file note.md.", "it", ("write",), False),
    ("Ho spostato le foto.", "it", ("move",), False),
    ("I file sono stati eliminati.", "it", ("delete",), False),
    ("Ho cancellato i file.", "it", ("write",), True),
    # Italian: no claims
    ("Non ho cancellato nulla.", "it", (), False),
    ("Vuoi che cancelli i file?", "it", (), False),
    ("Se vuoi, posso cancellarli.", "it", (), False),
    ("Il file contiene la frase «ho cancellato tutto».", "it", (), False),
    ("Il diario dice: \"ho spostato il mobile\".", "it", (), False),
    ("Ho trovato tre file.", "it", (), False),
    ("Ho letto il documento: parla di ferie.", "it", (), False),
    ("Il file non è stato salvato perché esiste già.", "it", (), False),
    ("L'ultima modifica è di ieri.", "it", (), False),
    ("La pagina sarà salvata quando confermi.", "it", (), False),
    ("Sono le 10:42 di lunedì.", "it", (), False),
    ("Posso scriverlo io, dimmi dove.", "it", (), False),
    # Italian: claims in other words, in another language, of a state, and promises nobody keeps
    ("Ho buttato via vecchio.txt.", "it", (), True),
    ("Ho tolto i doppioni.", "it", (), True),
    ("Ho messo la fattura nella cartella Tasse.", "it", (), True),
    ("Ho avvisato Anna.", "it", (), True),
    ("vecchio.txt è ora nel cestino.", "it", (), True),
    ("Operazione completata con successo.", "it", (), True),
    ("✅ Salvataggio completato", "it", (), True),
    ("File a.txt → salvato ✅", "it", (), True),
    ("- a.txt: eliminato", "it", (), True),
    ("✅ a.txt spostato in archivio", "it", (), True),
    ("Promemoria impostato per le 18.", "it", (), True),
    ("Ti ricorderò alle 18 di chiamare Anna.", "it", (), True),
    ("Sto eliminando i file.", "it", (), True),
    ("Ecco fatto: tutto a posto.", "it", (), True),
    ("Fatto, è a posto.", "it", (), True),
    ("Un fatto: il file ha tre righe.", "it", (), False),
    ("Fatto curioso, il file è vuoto.", "it", (), False),
    ("I have deleted all the files.", "it", (), True),
    ("Ho messo la fattura nella cartella Tasse.", "it", ("move",), False),
    ("vecchio.txt è ora nel cestino.", "it", ("delete",), False),
    ("Operazione completata con successo.", "it", ("move",), False),
    ("a.txt → salvato", "it", ("write",), False),
    ("Ho messo vecchio.txt nel cestino.", "it", ("delete",), False),
    ("Ho tolto il latte dalla lista.", "it", ("write",), False),
    ("I put old.txt into the trash.", "en", ("delete",), False),
    ("Sto eliminando i file.", "it", ("delete",), False),
    ("Non ti ricorderò nulla: i promemoria non ci sono ancora.", "it", (), False),
    ("Se vuoi te lo ricorderò un'altra volta.", "it", (), False),
    ("Nel cestino ci sono due file.", "it", (), False),
    ("File modificati oggi: tre.", "it", (), False),
    ("Mi dispiace, l'operazione non è stata completata.", "it", (), False),
    ("Il file si chiama «promemoria impostato».", "it", (), False),
    # English: claims without a step
    ("I have written the file notes.md.", "en", (), True),
    ("I saved the page to ~/notes/p.html.", "en", (), True),
    ("The file has been saved.", "en", (), True),
    ("I've deleted all three files.", "en", (), True),
    ("The files were successfully deleted.", "en", (), True),
    ("Done! Moved everything to the archive.", "en", (), True),
    ("The email was sent to Anna.", "en", (), True),
    ("I sent the message.", "en", (), True),
    ("I've renamed photo.jpg to sea.jpg.", "en", (), True),
    ("Your event has been created.", "en", (), True),
    ("I just added milk to the list.", "en", (), True),
    ("Successfully removed the folder.", "en", (), True),
    # English: in other words, in another language, of a state, and promises nobody keeps
    ("I got rid of old.txt.", "en", (), True),
    ("I've thrown away old.txt.", "en", (), True),
    ("I have tidied the folder.", "en", (), True),
    ("I've notified Anna.", "en", (), True),
    ("old.txt is now in the trash.", "en", (), True),
    ("Operation completed successfully.", "en", (), True),
    ("✅ Task complete", "en", (), True),
    ("- old.txt: deleted", "en", (), True),
    ("Reminder set for 6 PM.", "en", (), True),
    ("I'll remind you at 6 PM.", "en", (), True),
    ("I'm deleting the files now.", "en", (), True),
    ("All done, have a nice day.", "en", (), True),
    ("All set!", "en", (), True),
    ("Ho eliminato tutto.", "en", (), True),
    ("old.txt is now in the trash.", "en", ("delete",), False),
    ("Operation completed successfully.", "en", ("write",), False),
    ("I won't remind you: there are no reminders yet.", "en", (), False),
    ("The trash holds two files.", "en", (), False),
    ("Files modified today: three.", "en", (), False),
    # English: claims that a step backs
    ("I have written the file notes.md.", "en", ("write",), False),
    ("I saved the page.", "en", ("write",), False),
    ("The files were moved.", "en", ("move",), False),
    ("I've deleted the file.", "en", ("delete",), False),
    ("I've deleted the file.", "en", ("write",), True),
    # English: no claims
    ("I did not delete anything.", "en", (), False),
    ("Would you like me to delete them?", "en", (), False),
    ("I can move them if you want.", "en", (), False),
    ("The note says \"I deleted everything\".", "en", (), False),
    ("I found three files.", "en", (), False),
    ("I read the document: it is about holidays.", "en", (), False),
    ("The file was last modified yesterday.", "en", (), False),
    ("It couldn't be saved because it exists.", "en", (), False),
    ("It is 10:42 on Monday.", "en", (), False),
    # promises of later work: only a scheduled task keeps them, no other change does
    ("Ti ricorderò alle 18 di chiamare Anna.", "it", ("write",), True),
    ("Ti ricorderò alle 18 di chiamare Anna.", "it", ("schedule", LATER), False),
    ("Ti farò sapere appena esce.", "it", (), True),
    ("Terrò d'occhio la pagina.", "it", ("write",), True),
    ("Lo controllerò domani mattina.", "it", (), True),
    ("Ricontrollerò ogni ora.", "it", ("move",), True),
    ("Controllerò domani mattina e ti scrivo.", "it", ("schedule", LATER), False),
    ("Domani ti ricordo di guardarlo.", "it", (), True),
    ("Ti ricordo domani di guardarlo.", "it", (), True),
    ("Alle 18 ti avviso.", "it", ("write",), True),
    ("Ti faccio sapere appena esce.", "it", (), True),
    ("Domani lo controllerò.", "it", (), True),
    ("Domani ti ricordo di guardarlo.", "it", (LATER,), False),
    ("Ti ricordo che domani hai la riunione.", "it", (), False),
    ("Domani, ti ricordo che sei a Torino, piove.", "it", (), False),
    ("Ti mando l'elenco qui sotto.", "it", (), False),
    ("Ti scrivo i nomi: Anna e Luca.", "it", (), False),
    ("Tra i file ti mando il primo.", "it", (), False),
    ("Ti mando l'elenco: dopo Anna viene Luca.", "it", (), False),
    ("Per ogni file ti scrivo il nome.", "it", (), False),
    ("Te lo mando stasera.", "it", (), True),
    ("Ogni mattina ti mando il meteo.", "it", (), True),
    ("Tomorrow I'll check it.", "en", (), True),
    ("I'll write the names: Anna and Luca.", "en", (), False),
    ("Non ti farò sapere nulla: non posso.", "it", (), False),
    ("Se vuoi controllerò domani.", "it", (), False),
    ("Domani farà freddo.", "it", (), False),
    ("Il treno arriverà alle 18.", "it", (), False),
    ("I'll let you know when it changes.", "en", (), True),
    ("I will keep an eye on the page.", "en", ("write",), True),
    ("I'll check again tomorrow.", "en", (), True),
    ("I'll send it at 6 PM.", "en", (), True),
    ("I'll remind you at 6 PM.", "en", ("create", LATER), False),
    ("I'll remind you at 6 PM.", "en", ("write",), True),
    ("I will not check again.", "en", (), False),
    ("The shop will open tomorrow.", "en", (), False),
    ("I'll be brief: there are three files.", "en", (), False),
]  # fmt: skip


@pytest.mark.parametrize(
    ("sentence", "lang", "done", "dropped"), CLAIMS, ids=[c[0][:40] + c[1] for c in CLAIMS]
)
def test_check_claims_drops_what_no_step_backs(
    sentence: str, lang: str, done: tuple[str, ...], dropped: bool
) -> None:
    checked = check_claims(sentence, lang=lang, done=done)

    assert bool(checked.removed) is dropped
    assert (checked.text == "") is dropped


def test_check_claims_counts_no_false_drop_among_sixty() -> None:
    """The figure of C7: how many honest sentences are lost."""
    false_drops = [
        sentence
        for sentence, lang, done, dropped in CLAIMS
        if not dropped and check_claims(sentence, lang=lang, done=done).removed
    ]
    missed = [
        sentence
        for sentence, lang, done, dropped in CLAIMS
        if dropped and not check_claims(sentence, lang=lang, done=done).removed
    ]
    print(f"{len(CLAIMS)} sentences: {len(false_drops)} false drops, {len(missed)} missed")

    assert len(CLAIMS) >= 60
    assert false_drops == []
    assert missed == []


def test_check_claims_keeps_the_rest_of_the_answer() -> None:
    text = "Ho trovato tre file. Ho cancellato tutto. Il più grande è a.iso."

    checked = check_claims(text, lang="it", done=())

    assert checked.text == "Ho trovato tre file. Il più grande è a.iso."
    assert checked.removed == ("Ho cancellato tutto.",)


def test_check_claims_leaves_code_alone() -> None:
    text = "Ecco il file:\n\n```\nHo cancellato tutto.\n```\n"

    assert check_claims(text, lang="it", done=()).removed == ()


@pytest.mark.parametrize(
    ("request_text", "expected"),
    [
        ("cancella a.md", True),
        ("salvala in note", True),
        ("butta via vecchio.txt", True),
        ("togli i doppioni", True),
        ("pulisci la cartella", True),
        ("avvisa Anna che arrivo tardi", True),
        ("ricordami alle 18 di chiamare", True),
        ("sistema le foto", True),
        ("make a file a.txt saying hi", True),
        ("get rid of old.txt", True),
        ("clean up my notes", True),
        ("remind me at six", True),
        ("please delete the file", True),
        ("che ore sono?", False),
        ("what time is it in Tokyo?", False),
        ("leggi il diario", False),
    ],
)
def test_names_change_knows_requests_for_changes(request_text: str, expected: bool) -> None:
    assert names_change(request_text) is expected
