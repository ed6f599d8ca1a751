"""The pages: each reads what its address names, and shows the blocks of a view."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from starlette.responses import JSONResponse, RedirectResponse, Response

from debate.types import TurnId
from debate_rl.formatting import counted
from debate_rl.inspector.blocks import Block, Chart, Line, Link, Section, Series, Span, Table
from debate_rl.inspector.lists import DEBATES, REPLAYS, RUNS, STEPS, table_of
from debate_rl.inspector.overview import metrics_of, overviews
from debate_rl.inspector.views import adoption_view, debate_view, token_view, vote_graphs
from debate_rl.inspector.views.across import across, read
from debate_rl.inspector.views.compared import compare
from debate_rl.inspector.views.debate import DebateView
from debate_rl.inspector.views.debate_blocks import (
    answers_blocks,
    debate_blocks,
    parsing_blocks,
    prompt_blocks,
    token_blocks,
    turns_by_round,
    votes_blocks,
)
from debate_rl.inspector.views.fixture import fixture_text
from debate_rl.inspector.views.pairs_blocks import attacks_on, pair_blocks, pairs_blocks
from debate_rl.inspector.views.prompts import DebatePrompts
from debate_rl.inspector.views.replays import read_replay, replays
from debate_rl.inspector.views.run_blocks import (
    across_blocks,
    comparison_blocks,
    debate_replay_blocks,
    replay_blocks,
)
from debate_rl.inspector.views.why import config_of, evaluation_of, why, why_blocks
from debate_rl.inspector.web.page import Live, PageRequest, address, show
from debate_rl.inspector.web.rendering import Face, environment, render_blocks
from debate_rl.inspector.web.site import Busy, NotFound
from debate_rl.judge_attack.pairs import hack_gaps, judged_steps, watched_judge
from transcripts import DebateRow, Record, RunStore, StepRow
from transcripts.record import named

PAGE, SHOWN_STEPS, MOST_NEW = 50, 200, 200
"""Debates and pairs a page, steps a page, and rows in one answer: of more, the page is behind and says so."""
MOST_TURNS, MOST_TOKENS = 60, 700
MOST_CELLS = 700
"""Arrows and cells of matrices that a page has; of more, it has one round."""
TRAINING = (("loss", "loss"), ("KL", "kl_mean"), ("entropy", "entropy_mean"))
"""What is drawn of metrics.jsonl: how it is called, and its name there."""
SHARES = (
    ("accuracy, last round", "a", "accuracy_last_round"),
    ("accuracy, round 0", "b", "accuracy_round_0"),
    ("winner accuracy", "c", "winner_accuracy"),
    ("judge accuracy", "d", "judge_accuracy"),
)


def front(request: PageRequest) -> Response:
    """Show the runs, or go to the only one."""
    runs = request.site.runs()
    if request.site.is_one_run:
        return RedirectResponse(address("run", runs[0].name, ""), 307)
    table = table_of(RUNS, overviews(runs), name="runs", row_name="run")
    writing = any(run.writing for run in runs)
    return show(request, "runs", "Runs", [table], progress=(5000, "", 0) if writing else None)


def steps(request: PageRequest) -> Response:
    """Show a run step by step, the newest first, with the course of its figures."""
    store, links, run = request.store, request.links, request.run
    every = request.look("steps", lambda store: store.steps(links.filter))
    before = request.whole_number("before")
    rows = [row for row in reversed(every) if before is None or _step(row) < before]
    older = _step(rows[SHOWN_STEPS - 1]) if len(rows) > SHOWN_STEPS else None
    blocks: list[Block] = []
    if damage := store.damage:
        told = [Line(line) for line in damage[:50]]
        blocks.append(Section(counted(len(damage), "damaged place"), told, name="damage", folded=True))
    if len(judged_steps(run.path)) > 1:
        blocks.append(Line(Span("The judge under attack", link=Link(("pairs",))), name="judged"))
    blocks.append(Section("", _course(request, every), kind="course", id="course"))
    blocks += [_steps_table(rows[:SHOWN_STEPS])] if rows else [Line("No debate yet.", name="none")]
    live = Live(links("live", "steps", filter=links.filter), str(_step(every[-1])) if every else "", True)
    total = sum(row.debates for row in every)
    return show(
        request,
        "steps",
        request.name,
        blocks,
        counts={"total": total, "matching": total, "steps": run.steps},
        live=live if run.writing and before is None else None,
        pages=[]
        if older is None
        else [("Older steps", links("", before=older, filter=links.filter), "next")],
    )


def _step(row: StepRow) -> int:
    return -1 if row.step is None else row.step


def _steps_table(rows: Sequence[StepRow]) -> Table:
    ids = [f"step-{row.step}" for row in rows]
    return table_of(STEPS, rows, name="steps", row_name="step", ids=ids, body="rows")


def _course(request: PageRequest, rows: Sequence[StepRow]) -> list[Block]:
    """Return what is drawn over the steps: shares, and training figures, each in its range."""
    shares = [
        Series(title, style, [(_step(row), getattr(row, name)) for row in rows])
        for title, style, name in SHARES
    ]
    curves = metrics_of(request.run.path)
    points = ((title, *(part.tolist() for part in curves.of(name))) for title, name in TRAINING)
    own = [Series(title, "a", list(zip(at, values, strict=True))) for title, at, values in points]
    return [Chart(shares), *(Chart([series], fitted=True) for series in own)]


def debate_list(request: PageRequest) -> Response:
    """Show a page of debates, 50 a page."""
    store, links, after = request.store, request.links, request.query.get("after")
    page = request.look(
        ("rows", links.newest, after),
        lambda store: store.debates(links.filter, newest=links.newest, after=after, limit=PAGE + 1),
    )
    rows, total = page[:PAGE], store.count()
    live = Live(links("live", "debates", filter=links.filter), _newest(store), links.newest and after is None)
    pages = [("First page", links.debates(), "first")] if after else []
    pages += [(f"Next {PAGE}", links.debates(after=rows[-1].id), "next")] if len(page) > PAGE else []
    order = ("Oldest first", False) if links.newest else ("Newest first", True)
    none: list[Block] = (
        [] if rows else [Line("No debate matches." if links.filter else "No debate yet.", name="none")]
    )
    return show(
        request,
        "debates",
        "Debates",
        [*none, _debates_table(rows)],
        counts={"total": total, "matching": _matching(request) if links.filter else total, "steps": None},
        order=(order[0], links.debates(newest=order[1])),
        live=live if request.run.writing else None,
        pages=pages,
    )


def _debates_table(rows: Sequence[DebateRow]) -> Table:
    ids = [f"row-{row.id}" for row in rows]
    return table_of(DEBATES, rows, name="debates", row_name="row", ids=ids, body="rows")


def _matching(request: PageRequest) -> int | None:
    """Return how many debates match, None while they are being counted."""
    try:
        return request.look("count", lambda store: store.count(request.links.filter))
    except Busy:
        return None


def count(request: PageRequest) -> Response:
    """Answer with how many debates match, null while they are being counted."""
    return JSONResponse({"count": _matching(request)})


def _newest(store: RunStore) -> str:
    """Return the id of the newest debate, "" where there is none."""
    return next((row.id for row in store.debates(newest=True, limit=1)), "")


def new_debates(request: PageRequest) -> Response:
    """Answer with the debates of the filter after the cursor, newest first, and the next cursor.

    ``back``: the run is now behind the cursor, as after a resume from an earlier checkpoint.
    """
    links, cursor = request.links, request.query.get("after") or None
    store = request.site.searchable(request.name, links.filter)
    last = _newest(store)
    rows = store.debates(links.filter, after=cursor, limit=MOST_NEW + 1)
    more = len(rows) > MOST_NEW
    rows = [] if more else rows[::-1]
    return _answer(
        request,
        _debates_table(rows),
        count=len(rows),
        more=more,
        cursor=last,
        back=cursor is not None and _position(last) < _position(cursor),
        total=store.count(links.filter) if rows else None,
    )


def new_steps(request: PageRequest) -> Response:
    """Answer with the steps from the cursor on, which may have grown, newest first."""
    links = request.links
    store = request.site.searchable(request.name, links.filter)
    cursor = request.whole_number("after")
    rows = store.steps(links.within(f"step:>={cursor or 0}"))[::-1]
    last = _step(rows[0]) if rows else -1
    every = request.look("steps", lambda store: store.steps(links.filter))
    return _answer(
        request,
        _steps_table(rows[:MOST_NEW]),
        count=sum(_step(row) > (-1 if cursor is None else cursor) for row in rows),
        more=len(rows) > MOST_NEW,
        cursor=str(last) if rows else "",
        back=cursor is not None and last < cursor,
        total=store.count(links.filter),
        steps=len(store.steps()),
        course=render_blocks(_course(request, every), Face(links.href)),
    )


def _answer(request: PageRequest, rows: Table, **values: object) -> Response:
    macros: Any = environment().get_template("blocks.html").module
    html = str(macros.rows(rows, Face(request.links.href)))
    return JSONResponse({**values, "html": html.strip(), "live": request.run.writing})


def _position(id: str) -> tuple[int, ...]:
    """Return step and index of a debate, by which debates are ordered."""
    return tuple(int(part) for part in id.split(".")) if id else ()


def same_problem(request: PageRequest) -> Response:
    """Show a problem's debates, and what differs between two of them where two are chosen."""
    problem, a, b = (request.query.get(key, "") for key in ("problem", "a", "b"))
    if not problem:
        raise NotFound("the address names no problem: problem=ID")
    store = request.store
    result = across(store, problem)
    blocks = across_blocks(result)
    table = blocks[-1]
    if isinstance(table, Table):  # with two links in each row, which choose what is compared
        rows = [
            (*row, *_choices(problem, one.ref, a, b))
            for row, one in zip(table.rows, result.held, strict=True)
        ]
        heads = (*table.heads, "before", "after")
        caption = f"{len(result.held)} of {result.total} debates; choose two to compare"
        blocks[-1] = Table(heads, rows, caption, table.name, table.row_name)
    if a and b:
        both = compare(read(store, a), read(store, b), (a, b))
        blocks.append(Section(f"{a} and {b}", comparison_blocks(both), name="comparison"))
    return show(request, "across", f"Problem {problem}", blocks)


def _choices(problem: str, ref: str, a: str, b: str) -> Iterable[Span]:
    """Yield the links that make a debate the first and the second of those that are compared."""
    for name, chosen, pair in (("before", a, (ref, b)), ("after", b, (a, ref))):
        query = (("problem", problem), ("a", pair[0]), ("b", pair[1]))
        yield Span("●" if chosen == ref else "○", link=Link(("across",), query), name=name)


def replay_list(request: PageRequest) -> Response:
    """Show the replays of a run."""
    found = replays(request.run.path)
    none = Line("There are none. debate replay RUN rewards.truth_weight=0.3 makes one.", name="none")
    blocks = [table_of(REPLAYS, found, name="replays", row_name="replay") if found else none]
    return show(request, "replays", "Replays: what another scheme would have given", blocks)


def replay(request: PageRequest) -> Response:
    """Show one replay, and one debate under both schemes where the address names it."""
    run, id = request.run.path, request.query.get("debate", "")
    if request.replay not in {listed.name for listed in replays(run)}:
        raise NotFound(f"there is no replay {request.replay!r}")
    replayed = read_replay(run, request.replay)
    debate = replayed.debate(id) if id else None
    if id and debate is None:
        raise NotFound(f"the replay shows no debate {id!r}")
    one = debate_replay_blocks(debate) if debate else []
    return show(request, "replay", f"Replay {replayed.name}", [*one, *replay_blocks(replayed)])


def judge_pairs(request: PageRequest) -> Response:
    """Show how both judges judged a run's fixed pairs under attack; one pair where the address names it."""
    step, run, pair = request.whole_number("step"), request.run.path, request.whole_number("pair")
    links, start = request.links, request.whole_number("after") or 0
    try:
        watched = watched_judge(run, step)
        if watched is None:
            when = "" if step is None else f" after {counted(step, 'step')}"
            raise NotFound(f"no judge was watched in this run{when} (held_out.judge_pairs)")
        if pair is not None:
            attacks = attacks_on(watched, pair)
            back = ("All pairs", links("pairs", step=watched.step), "all-pairs")
            return show(request, "pair", f"Pair {pair}", pair_blocks(attacks, watched.step), pages=[back])
        blocks = pairs_blocks(watched, hack_gaps(run), start, PAGE)
    except ValueError as error:
        raise NotFound(str(error)) from error
    more = len({attack.number for attack in watched.attacks}) > start + PAGE
    pages = [("More pairs", links("pairs", step=watched.step, after=start + PAGE), "next")] if more else []
    return show(request, "pairs", "The judge under attack, on fixed pairs", blocks, pages=pages)


def _record(request: PageRequest, *, tokens: bool = False) -> Record:
    """Return the debate that was asked for; one of an evaluation has no token arrays here."""
    if request.is_evaluated:
        return read(request.store, request.id)
    return request.store.debate(request.id, tokens=tokens)


def _in_debate(
    request: PageRequest,
    kind: str,
    title: str,
    view: DebateView,
    blocks: Iterable[Block],
    *,
    picked: TurnId | None = None,
    **values: Any,
) -> Response:
    """Show a page about a debate, with its neighbours, the other views of it, and turns to choose from."""
    newest = request.links.newest
    near = None
    if not request.is_evaluated:
        near = {"previous": _beside(request, newest=not newest), "next": _beside(request, newest=newest)}
    of = "" if picked is None else f" of {view.spelled(picked)}"
    return show(
        request,
        kind,
        f"{title}{of}, debate {request.id}" if kind != "debate" else title,
        blocks,
        near=near,
        shown=view,
        picked=None if picked is None else (picked, turns_by_round(view, picked), named),
        **values,
    )


def _beside(request: PageRequest, *, newest: bool) -> str | None:
    """Return the next debate in an order of the filter's list; "…" while texts are looked through."""

    def next_of(store: RunStore) -> str | None:
        rows = store.debates(request.links.filter, newest=newest, after=request.id, limit=1)
        return rows[0].id if rows else None

    try:
        return request.look(("beside", request.id, newest), next_of)
    except Busy:
        return "…"


def debate(request: PageRequest) -> Response:
    """Show a debate; ``written=1``: with mathematics as it was written, to be read and copied."""
    view = debate_view(request.id, _record(request))
    first = request.whole_number("round") or 0
    written = request.query.get("written") == "1"
    held = len(view.turns[0]) if view.turns else 0
    fit = max(1, MOST_TURNS // max(1, view.agents))
    rounds = range(first, min(held, first + fit))
    links = request.links
    pages = (
        [("Earlier rounds", links.debate(request.id, round=max(0, first - fit)), "earlier")] if first else []
    )
    pages += (
        [("Later rounds", links.debate(request.id, round=first + fit), "later")] if held > first + fit else []
    )
    blocks = debate_blocks(view, rounds, whole=request.turn("full"))
    return _in_debate(request, "debate", f"Debate {request.id}", view, blocks, pages=pages, written=written)


def graph(request: PageRequest) -> Response:
    """Show the votes of each round, or of one where there are very many."""
    record = _record(request)
    view, graphs = debate_view(request.id, record), vote_graphs(record)
    round_ = request.whole_number("round")
    if round_ is None and sum(len(graph.arrows) + len(graph.solutions) ** 2 for graph in graphs) > MOST_CELLS:
        round_ = graphs[-1].round
    shown = [graph for graph in graphs if round_ in (None, graph.round)]
    pages = [
        (
            f"Votes on {view.round_name(graph.round)}",
            request.links.debate(request.id, "graph", round=graph.round),
            "",
        )
        for graph in graphs
        if graph not in shown
    ]
    return _in_debate(request, "graph", "Votes", view, votes_blocks(view, shown), pages=pages)


def adoption(request: PageRequest) -> Response:
    """Show the answers of each agent by round, equal ones alike, and who took over whose."""
    record = _record(request)
    view = debate_view(request.id, record)
    return _in_debate(request, "adoption", "Answers", view, answers_blocks(view, adoption_view(record)))


def parse(request: PageRequest) -> Response:
    """Show what is malformed, where, by which rule, and what today's parser reads."""
    record = _record(request)
    view = debate_view(request.id, record)
    return _in_debate(request, "parse", "Malformed", view, parsing_blocks(view, record))


def _chosen(request: PageRequest, view: DebateView) -> TurnId:
    """Return the turn of the address, or the winner's, or the first; NotFound where there is no such turn."""
    turn = request.turn() or view.winner or next((turn.id for turn in view.spoken()), None)
    if turn is None or view.turn(turn) is None:
        missing = "there is no turn in it" if turn is None else f"no turn {named(turn)} in it"
        raise NotFound(f"debate {request.id}: {missing}")
    return turn


def tokens(request: PageRequest) -> Response:
    """Show one turn token by token, a page of it at a time."""
    record = _record(request, tokens=True)
    view = debate_view(request.id, record)
    chosen = _chosen(request, view)
    found = token_view(record, chosen, evaluation=evaluation_of(request.store.run))
    start = min(request.whole_number("from") or 0, max(0, len(found.tokens) - 1))
    ways = [("Earlier tokens", max(0, start - MOST_TOKENS), start > 0)]
    ways.append(("More tokens", start + MOST_TOKENS, start + MOST_TOKENS < len(found.tokens)))
    links, turn = request.links, named(chosen)
    pages = [
        (title, links.debate(request.id, "tokens", **{"turn": turn, "from": at}), title.split()[0].lower())
        for title, at, there in ways
        if there
    ]
    blocks = token_blocks(found, start, MOST_TOKENS)
    return _in_debate(request, "tokens", "Tokens", view, blocks, picked=chosen, pages=pages)


def explained(request: PageRequest) -> Response:
    """Show the chain of a turn: votes, rewards, baselines, advantage."""
    store, view = request.store, debate_view(request.id, _record(request))
    if request.is_evaluated:
        raise NotFound(f"debate {request.id} is of an evaluation: nothing was rewarded in it")
    chosen = _chosen(request, view)
    config, note = config_of(store.run)
    blocks = why_blocks(why(store, config, request.id, chosen, note=note))
    return _in_debate(request, "why", "Why this reward?", view, blocks, picked=chosen)


def prompt(request: PageRequest) -> Response:
    """Show what a turn read, and what the summariser of its round read."""
    record = _record(request, tokens=True)
    view = debate_view(request.id, record)
    chosen = _chosen(request, view)
    blocks = prompt_blocks(view, DebatePrompts(record.debate, request.store.run), chosen)
    return _in_debate(request, "prompt", "Prompt", view, blocks, picked=chosen)


def download(request: PageRequest) -> Response:
    """Answer with the fixture's JSON."""
    record = _record(request)
    config, _ = config_of(request.store.run)
    name = f"debate_{record.step}_{int(request.id.rpartition('.')[2])}.json"
    content = fixture_text(record, config, source=f"{request.name} {request.id}")
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(content, media_type="application/json", headers=headers)
