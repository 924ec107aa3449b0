"""What a person is told at the end: done, not done and unknown, from the records alone."""

from __future__ import annotations

from typing import Any

import pytest

from bot.app import load_texts
from core.catalog.loaded import NO_SDK, Catalog, LoadedExecutor
from core.errors import ErrorCode, ErrorInfo
from core.levels.runner import Outcome
from core.levels.terminator import Closing, Terminator
from core.messages import FinalKind
from core.observation import Effects, Observation
from core.plan import FINAL_ANSWER, Plan, Step
from core.turn_state import StepRecord, TurnState
from tests.execution.test_arguments import manifest

TOOLS = ("get_now", "read_files", "write_files", "move_files", "delete_files", "find_files")
CATALOG = Catalog({name: LoadedExecutor(manifest(name), {}) for name in TOOLS}, (), NO_SDK, "x")
DECLINED = Observation.failed(ErrorCode.DECLINED)
MISSING = Observation.failed(ErrorCode.NOT_FOUND, path="/h/notes/a.md")
UNKNOWN_TOOL = Observation.failed(ErrorCode.UNKNOWN_TOOL)


def record(number: int, tool: str, observation: Observation, **args: Any) -> StepRecord:
    return StepRecord(number, tool, args, args, observation, {}, ran=True)


def wrote(number: int, path: str) -> StepRecord:
    entry = {"ok": True, "path": path, "bytes": 3, "created": True, "mode": "overwrite"}
    done = Observation(ok=True, entries=(entry,), effects=Effects.DONE)
    return record(number, "write_files", done, path=path, content="abc")


def read(number: int, text: str = "latte") -> StepRecord:
    entry = {"ok": True, "path": "/h/notes/a.md", "name": "a.md", "text": text, "bytes": 5}
    return record(number, "read_files", Observation(ok=True, entries=(entry,)), paths=["a.md"])


def end(*steps: StepRecord, answer: str = "", kind: FinalKind = FinalKind.ANSWER,
        error: ErrorInfo | None = None, plan: Plan | None = None, lang: str = "it",
        request: str = "scrivi e cancella") -> Closing:  # fmt: skip
    state = TurnState("f00d" * 8, request, plan, len(steps), steps)
    outcome = Outcome(state, kind, answer, error)
    terminator = Terminator(load_texts())
    return terminator.close(
        outcome, request=request, lang=lang, tz="Europe/Rome", home="/h", catalog=CATALOG
    )


def test_close_of_a_refused_change_is_no_answer_whatever_the_model_says() -> None:
    refused = record(1, "delete_files", DECLINED, paths=["/h/notes/a.md"])

    closing = end(read(1), refused, answer="Ecco fatto, a posto.")

    assert closing.reply.final_kind is FinalKind.ERROR
    assert "hai detto di no" in closing.reply.plain
    assert closing.error is not None
    assert closing.error.code is ErrorCode.DECLINED


def test_close_of_a_change_that_worked_at_the_second_try_is_an_answer() -> None:
    failed = record(1, "write_files", MISSING, path="/h/notes/x/a.md")

    closing = end(failed, wrote(2, "/h/notes/a.md"), answer="Scritto a.md.")

    assert closing.reply.final_kind is FinalKind.ANSWER
    assert closing.error is None


def test_close_of_a_turn_in_which_nothing_worked_is_no_answer() -> None:
    closing = end(record(1, "read_files", MISSING), answer="Dice: latte.", request="leggi a.md")

    assert closing.reply.final_kind is FinalKind.ERROR
    assert "~/notes/a.md" in closing.reply.plain


def test_close_after_the_models_own_slips_is_its_answer() -> None:
    closing = end(
        record(1, "order_taxi", UNKNOWN_TOOL), answer="Prenotare un taxi non è fra le cose che so."
    )

    assert closing.reply.final_kind is FinalKind.ANSWER


def test_close_of_a_read_that_found_part_of_it_is_an_answer() -> None:
    closing = end(
        read(1), record(2, "read_files", MISSING), answer="Solo il primo.", request="leggi"
    )

    assert closing.reply.final_kind is FinalKind.ANSWER


def test_close_of_a_plan_that_failed_midway_says_done_and_not_done() -> None:
    plan = Plan(
        (
            Step("write_files", {"path": "a.md", "content": "abc"}),
            Step("delete_files", {"paths": ["b.md"]}),
            Step("move_files", {"paths": ["~/notes/c.md"], "dst": "old"}),
            Step("read_files", {"paths": ["d.md"]}),
        )
    )
    refused = record(2, "delete_files", DECLINED, paths=["/h/notes/b.md"])

    closing = end(
        wrote(1, "/h/notes/a.md"), refused, kind=FinalKind.ERROR, error=DECLINED.error, plan=plan
    )

    told = closing.reply.plain
    assert "Scritto: ~/notes/a.md" in told
    assert "Non eliminato: ~/notes/b.md" in told
    assert "Non spostato: ~/notes/c.md, old" in told
    assert "Non ho cambiato nulla" not in told


def test_close_of_a_plan_whose_rest_stands_on_references_says_that_there_was_more() -> None:
    plan = Plan((Step("find_files", {}), Step("delete_files", {"from_step": 1})))
    broken = Observation.failed(ErrorCode.TIMEOUT)

    closing = end(
        wrote(1, "/h/notes/a.md"),
        record(2, "get_now", broken),
        kind=FinalKind.ERROR,
        error=broken.error,
        plan=Plan((*plan.steps, Step("delete_files", {"from_step": 1}))),
        lang="en",
    )

    assert "I did not do the rest." in closing.reply.plain


def test_close_of_a_plan_that_failed_shows_what_was_found_before() -> None:
    closing = end(
        read(1), record(2, "read_files", MISSING), kind=FinalKind.ERROR, error=MISSING.error
    )

    assert "latte" in closing.reply.plain
    assert "Non esiste" in closing.reply.plain
    assert closing.reply.plain.rstrip().endswith("rif. f00df0")


def test_close_names_the_items_of_a_change_that_failed() -> None:
    entries = (
        {"ok": True, "path": "/h/notes/old/a.md", "source": "/h/notes/a.md", "bytes": 1},
        {"ok": False, "path": "/h/notes/b.md", "error": {"code": "not_found"}},
    )
    moved = Observation(ok=True, entries=entries, effects=Effects.DONE)

    closing = end(record(1, "move_files", moved, paths=["a", "b"]), answer="Spostati.")

    assert "Non spostato: ~/notes/b.md" in closing.reply.plain


def test_close_of_several_items_that_all_failed_names_each() -> None:
    entries = tuple(
        {"ok": False, "path": f"/h/{name}", "error": {"code": "not_found"}} for name in ("a", "b")
    )
    missing = ErrorInfo(ErrorCode.NOT_FOUND, {"path": "/h/a"})
    failed = Observation(ok=False, entries=entries, error=missing)

    closing = end(record(1, "read_files", failed), kind=FinalKind.ERROR, error=missing)

    assert "~/a" in closing.reply.plain
    assert "~/b" in closing.reply.plain


def test_close_of_a_change_that_another_step_read_back_still_tells_the_change() -> None:
    back = record(2, "read_files", read(2).observation, paths=["{{step1.path}}"])

    closing = end(wrote(1, "/h/notes/a.md"), back)

    assert "latte" in closing.reply.plain
    assert "Scritto: ~/notes/a.md" in closing.reply.plain


@pytest.mark.parametrize("code", [ErrorCode.DUPLICATE_CALL, ErrorCode.VECTORISE])
def test_close_of_a_loop_of_advice_speaks_of_the_loop_alone(code: ErrorCode) -> None:
    advice = Observation.failed(code)

    closing = end(
        read(1), record(2, "read_files", advice), kind=FinalKind.LOOP_BREAK, error=advice.error
    )

    assert "lo stesso passo falliva" in closing.reply.plain
    assert "ripetendo" not in closing.reply.plain
    assert "latte" in closing.reply.plain


@pytest.mark.parametrize(
    ("answer", "steps", "expected"),
    [
        ("Quale file intendi?", 0, FinalKind.ASK),
        ("Posso scriverlo in a.md o in b.md. Quale preferisci?", 0, FinalKind.ASK),
        ("Ho trovato a.md e b.md. Quale dei due apro?", 1, FinalKind.ASK),
        ("I found two files: a.md and b.md. Which one?", 1, FinalKind.ASK),
        ("Quale dei due?", 1, FinalKind.ASK),
        ("Dice: latte. Ti serve altro?", 1, FinalKind.ANSWER),
        ("It says milk. Shall I read on?", 1, FinalKind.ANSWER),
        ("Dice: latte.", 1, FinalKind.ANSWER),
        ("La domanda «chi sei?» sta nel file.", 1, FinalKind.ANSWER),
    ],
)
def test_close_of_a_question_is_an_ask(answer: str, steps: int, expected: FinalKind) -> None:
    closing = end(*[read(n + 1) for n in range(steps)], answer=answer, request="apri il file")

    assert closing.reply.final_kind is expected


def test_failure_leaves_out_what_is_not_known() -> None:
    closing = end(kind=FinalKind.ERROR, error=ErrorInfo(ErrorCode.OUT_OF_SCOPE, {"roots": ""}))

    assert "()" not in closing.reply.plain
    assert "{" not in closing.reply.plain


def test_close_with_a_name_of_several_lines_tells_the_change_on_one_line() -> None:
    closing = end(wrote(1, "/h/notes/a\nEliminato: tutto"), answer="Ecco.")

    assert r"~/notes/a\nEliminato: tutto" in closing.reply.plain


def test_close_of_a_folder_moved_into_itself_is_no_answer() -> None:
    failed = Observation.failed(ErrorCode.INTO_ITSELF, path="/h/notes/box")
    moved = record(1, "move_files", failed, paths=["/h/notes/box"], dst="/h/notes/box/in")

    closing = end(moved, answer="Fatto.", request="sposta box")

    assert closing.reply.final_kind is FinalKind.ERROR
    assert "dentro se stessa (~/notes/box)" in closing.reply.plain


def test_close_of_a_change_of_too_many_items_is_no_answer() -> None:
    failed = Observation.failed(ErrorCode.TOO_MANY, argument="entries", count=5000, limit=500)

    closing = end(record(1, "move_files", failed, from_step=1), answer="Ecco.", request="sposta")

    assert closing.reply.final_kind is FinalKind.ERROR
    assert "5.000, e arrivo a 500" in closing.reply.plain


@pytest.mark.parametrize("lang", ["it", "en"])
@pytest.mark.parametrize("code", list(ErrorCode), ids=str)
def test_close_after_a_change_no_error_says_that_nothing_was_done(
    code: ErrorCode, lang: str
) -> None:
    failed = record(2, "delete_files", Observation.failed(code), paths=["/h/notes/b.md"])

    closing = end(
        wrote(1, "/h/notes/a.md"), failed, kind=FinalKind.ERROR, error=failed.observation.error,
        lang=lang,
    )  # fmt: skip

    told = closing.reply.plain.casefold()
    assert "~/notes/a.md" in told
    for words in ("fatto nulla", "scritto nulla", "cambiato nulla", "did nothing", "wrote nothing",
                  "changed nothing", "did not change anything"):  # fmt: skip
        assert words not in told


def test_close_takes_out_a_promise_that_no_task_keeps_and_says_so() -> None:
    """Also when nothing about the request speaks of a change."""
    closing = end(read(1), answer="Dice: latte. Ti farò sapere domani.", request="leggi a.md")

    assert "Dice: latte." in closing.reply.plain
    assert "farò sapere" not in closing.reply.plain
    assert "nessun compito è programmato" in closing.reply.plain
    assert closing.unbacked == ("Ti farò sapere domani.",)


def test_close_of_a_plan_says_that_a_claim_was_taken_out_of_its_answer() -> None:
    final = record(
        2, FINAL_ANSWER, Observation(ok=True, content="Ho spostato a.md. Dice: latte."), text="x"
    )

    closing = end(read(1), final, plan=Plan((Step("read_files", {}), Step(FINAL_ANSWER, {}))))

    assert "Ho spostato" not in closing.reply.plain
    assert "Dice: latte." in closing.reply.plain
    assert "Non ho cambiato nulla" in closing.reply.plain


def test_close_leaves_a_promise_that_a_task_keeps() -> None:
    task = record(
        1, "schedule_recurring", Observation(ok=True, content=1, effects=Effects.DONE), text="x"
    )

    closing = end(task, answer="Ti ricorderò alle 18.", request="ricordami alle 18")

    assert "Ti ricorderò alle 18." in closing.reply.plain
    assert closing.unbacked == ()


@pytest.mark.parametrize(
    ("lang", "said"),
    [
        ("it", "Non esiste (~/notes/a.md). Controlla il nome, oppure chiedimi di cercarlo."),
        ("en", "It does not exist (~/notes/a.md). Check the name, or ask me to look for it."),
    ],
)
def test_failure_says_what_happened_what_was_not_done_and_what_next(lang: str, said: str) -> None:
    missing = record(1, "read_files", MISSING, paths=["/h/notes/a.md"])

    closing = end(missing, kind=FinalKind.ERROR, error=MISSING.error, lang=lang)

    first, *rest = [block.text for block in closing.reply.blocks]
    assert first == said
    assert len(rest) == 2
    assert "f00df0" in rest[-1]


def test_long_paths_are_shortened_in_the_middle_where_they_are_only_named() -> None:
    path = "/h/Documenti/lavoro/2026/clienti/ferramenta-rossi/ordini/marzo/ordine-12.md"

    closing = end(wrote(1, path), answer="Ecco.", request="scrivi")

    assert "~/Documenti/…/marzo/ordine-12.md" in closing.reply.plain
    assert "ferramenta" not in closing.reply.plain
