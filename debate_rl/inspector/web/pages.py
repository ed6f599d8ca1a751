"""The pages. Each page reads the data of its address and shows the blocks of a view."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import TypeAlias
from urllib.parse import quote

from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from debate.types import TurnId
from debate_rl.formatting import counted, json_number
from debate_rl.inspector.blocks import Block, Line, Link, Section, Span, Table, to_debate
from debate_rl.inspector.lists import DEBATES, REPLAYS, RUNS, STEPS, table_of
from debate_rl.inspector.runs import config_of, evaluation_of, metrics_of, overviews
from debate_rl.inspector.views import adoption_view, debate_view, token_view, vote_graphs
from debate_rl.inspector.views.across import across, across_blocks, compare, comparison_blocks
from debate_rl.inspector.views.across import read as read_debate
from debate_rl.inspector.views.branches import (
    branch_blocks,
    branches_of,
    stored_branch,
    vote_effect,
    what_if_blocks,
)
from debate_rl.inspector.views.debate import DebateView
from debate_rl.inspector.views.debate_blocks import answers_blocks, debate_blocks, turns_by_round
from debate_rl.inspector.views.group import (
    group_blocks,
    group_named,
    group_view,
    groups_of,
    groups_table,
    histograms,
)
from debate_rl.inspector.views.identity import identity_line, parts_blocks, report_of, settings_blocks
from debate_rl.inspector.views.marks import Marker
from debate_rl.inspector.views.parsing import parsing_blocks
from debate_rl.inspector.views.prompts import DebatePrompts, prompt_blocks
from debate_rl.inspector.views.replays import debate_replay_blocks, read_replay, replay_blocks, replays
from debate_rl.inspector.views.tokens import token_blocks
from debate_rl.inspector.views.votes import attacks_on, pair_blocks, pairs_blocks, votes_blocks, wrong_votes
from debate_rl.inspector.views.why import why
from debate_rl.inspector.views.why_text import why_blocks
from debate_rl.inspector.web.json_lines import action_json, runs_json
from debate_rl.inspector.web.page import PageRequest, address, show
from debate_rl.inspector.web.site import Busy, NotFound
from debate_rl.judge_attack.pairs import hack_gaps, judged_steps, watched_judge
from debate_rl.metrics.held_out import NAME as HELD_OUT
from debate_rl.metrics.held_out import evaluated_first
from debate_rl.replay.branches import kept_before
from debate_rl.replay.scheme import scheme_of
from transcripts import FilterError, Record, StepRow, compile_filter
from transcripts.annotations import KINDS, Place
from transcripts.errors import FieldError
from transcripts.filters.fields import FIELDS
from transcripts.filters.parse import quoted
from transcripts.filters.presets import PRESETS
from transcripts.record import named

Page: TypeAlias = Callable[[PageRequest], Response]
ReadBlocks: TypeAlias = Callable[[PageRequest, Record, DebateView, TurnId], Iterable[Block]]
PAGE, SHOWN_STEPS = 50, 100
"""Number of debates or pairs per page, and of steps per page."""
MOST_TURNS, MOST_TOKENS = 60, 700
MOST_CELLS = 700
"""Maximum number of arrows and matrix cells on a page. Above it, the page shows one round."""


def front(request: PageRequest) -> Response:
    """Show the runs, or redirect to the only run."""
    runs = request.site.runs()
    if request.site.is_one_run:
        return RedirectResponse(address("run", runs[0].name, ""), 307)
    table = table_of(RUNS, overviews(runs), name="runs", row_name="run")
    writing = any(run.writing for run in runs)
    return show(request, "runs", "Runs", [table], progress=(5000, "", 0) if writing else None)


def steps(request: PageRequest) -> Response:
    """Show the steps of a run, the newest first, with charts of its figures."""
    store, links, run = request.store, request.links, request.run
    every = request.look("steps", lambda store: store.steps(links.filter))
    before = request.whole_number("before")
    rows = [row for row in reversed(every) if before is None or _step(row) < before]
    older = _step(rows[SHOWN_STEPS - 1]) if len(rows) > SHOWN_STEPS else None
    blocks: list[Block] = [identity_line(run.path)]
    if damage := store.damage:
        lines = [Line(line) for line in damage[:50]]
        blocks.append(Section(counted(len(damage), "damaged place"), lines, name="damage", folded=True))
    if len(judged_steps(run.path)) > 1:
        blocks.append(Line(Span("Attacks on the judge", link=Link(("pairs",))), name="judged"))
    blocks += _presets(request, links.filter)
    blocks.append(Section("", [], kind="course", id="course"))
    ids = [f"step-{row.step}" for row in rows[:SHOWN_STEPS]]
    table = table_of(STEPS, rows[:SHOWN_STEPS], name="steps", row_name="step", ids=ids, body="rows")
    blocks += [table] if rows else [Line("No debate yet.", name="none")]
    total = sum(row.debates for row in every)
    counts = {"total": total, "matching": total, "steps": run.steps}
    next_page = ("Older steps", links("", before=older, filter=links.filter), "next")
    live, pages = "insert" if run.writing and before is None else None, [] if older is None else [next_page]
    return show(request, "steps", request.name, blocks, counts=counts, live=live, pages=pages)


def _step(row: StepRow) -> int:
    return -1 if row.step is None else row.step


def _presets(request: PageRequest, within: str) -> list[Block]:
    """Return the preset filters as links with their counts among the debates that match ``within``.

    A preset that ``within`` contains is marked, and its link removes it.
    """
    chosen = ""
    for asked in (preset.filter for preset in PRESETS.values()):
        if within == asked:
            chosen, within = asked, ""
        elif within.startswith(f"{asked} (") and within.endswith(")"):
            with suppress(FilterError):  # such as (a) OR (b), whose first and last parenthesis are no pair
                compile_filter(rest := within[len(asked) + 2 : -1])
                chosen, within = asked, rest
    counts = request.site.counts(request.name, within)
    if counts is None:
        return []
    words: list[Span | str] = ["Debates in which "]
    for (text, asked), count in zip(PRESETS.values(), counts, strict=True):
        both = f"{asked} ({within})" if within else asked
        link = Link(("debates",), (("filter", within if asked == chosen else both),)) if count else None
        style = "chip on" if asked == chosen else "chip" if count else "chip none"
        words += [Span(f"{text} · {count:,}", style, link, "preset"), " "]
    return [Line(words, "chips", name="presets")]


def step_groups(request: PageRequest) -> Response:
    """Show the groups of a step, and one of them as a grid of turns."""
    step = request.whole_number("step")
    if step is None:
        raise NotFound("the address names no step: step=NUMBER")
    groups = groups_of(request.store, step)
    chosen = group_named(groups, request.query.get("problem", ""))
    blocks = [
        *group_blocks(group_view(request.store, chosen)),
        Section("Groups of the step", [groups_table(groups, chosen)]),
    ]
    if bars := histograms(groups):
        about = Line("Mean reward or advantage of each debate; a number leads to its debates", "faint")
        drawn = Section("", bars, kind="histograms")
        blocks.append(Section("Rewards and advantages of the step", [about, drawn]))
    held = request.look("held", lambda store: [row.step for row in store.steps("") if row.step is not None])
    near = {"prev": max((one for one in held if one < step), default=None)}
    near |= {"next": min((one for one in held if one > step), default=None)}
    pages = [
        (f"Step {one}", request.links("group", step=one), rel) for rel, one in near.items() if one is not None
    ]
    return show(request, "group", f"Step {step}", blocks, pages=pages)


def settings(request: PageRequest) -> Response:
    """Show a run's settings, or how they differ from those of another run."""
    others = {run.name: run.path for run in request.site.runs() if run.name != request.name}
    name = request.query.get("other", "")
    if name and name not in others:
        raise NotFound(f"there is no other run {name!r} here")
    blocks = settings_blocks(request.run.path, (name, others[name]) if name else None, list(others))
    return show(request, "settings", "Settings", blocks)


def report(request: PageRequest) -> Response:
    """Return the report that ``debate report`` wrote into the run's folder, in a sandbox without scripts."""
    path = report_of(request.run.path)
    if path is None:
        raise NotFound("this run has no report: debate report RUN writes one")
    policy = "sandbox; default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    return HTMLResponse(path.read_bytes(), headers={"Content-Security-Policy": policy})


def evaluations(request: PageRequest) -> Response:
    """Show a run's evaluations and checkpoints."""
    return show(request, "evaluations", "Evaluations", parts_blocks(request.run.path, request.name))


def metrics_json(request: PageRequest) -> Response:
    """Return the names of a run's metrics, and the values of the named ones by step, as JSON.

    ``names``: a comma between names. ``runs``: the other runs that are served. Step -1 has the held-out
    figures before the first step, if one of the names is such a figure.
    """
    curves = metrics_of(request.run.path)
    wanted = [name for name in request.query.get("names", "").split(",") if name in curves.values]
    columns = {name: [json_number(value) for value in curves.dense(name).tolist()] for name in wanted}
    others = [run.name for run in request.site.runs() if run.name != request.name]
    names, steps = sorted({*curves.values} - {"step"}), curves.steps.tolist()
    of_eval = any(name.startswith("eval/") for name in wanted)
    if of_eval and (before := evaluated_first(request.run.path / HELD_OUT)):
        columns = {name: [before.get(name), *column] for name, column in columns.items()}
        steps = [-1, *steps]
    return JSONResponse(
        {"run": request.name, "runs": others, "names": names, "steps": steps, "values": columns}
    )


def fields_json(request: PageRequest) -> Response:
    """Return the fields of filters, each with its meaning and the values to choose from, as JSON."""
    found: list[dict[str, object]] = []
    for field in FIELDS.values():
        words = list(field.words) or [field.example.partition(":")[2]]
        if field.name == "persona":
            words = [quoted(name) for name in request.store.personas()]
        found.append({"name": field.name, "about": field.about, "words": words})
    return JSONResponse(found)


def debate_list(request: PageRequest) -> Response:
    """Show a page of debates, 50 at a time."""
    store, links, after = request.store, request.links, request.query.get("after")
    page = request.look(
        ("rows", links.newest, after),
        lambda store: store.debates(links.filter, newest=links.newest, after=after, limit=PAGE + 1),
    )
    rows, total = page[:PAGE], store.count()
    live = ("insert" if links.newest and after is None else "offer") if request.run.writing else None
    pages = [("First page", links.debates(), "first")] if after else []
    pages += [(f"Next {PAGE}", links.debates(after=rows[-1].id), "next")] if len(page) > PAGE else []
    ids = [f"row-{row.id}" for row in rows]
    order = ("Oldest first" if links.newest else "Newest first", links.debates(newest=not links.newest))
    counts = {"total": total, "matching": _matching(request) if links.filter else total, "steps": None}
    blocks: list[Block] = [table_of(DEBATES, rows, name="debates", row_name="row", ids=ids, body="rows")]
    none = Line("No debate matches." if links.filter else "No debate yet.", name="none")
    blocks = [*_presets(request, links.filter), *(blocks if rows else [none, *blocks])]
    return show(request, "debates", "Debates", blocks, counts=counts, order=order, live=live, pages=pages)


def _matching(request: PageRequest) -> int | None:
    """Return the number of matching debates, or None while the count is in progress."""
    try:
        return request.look("count", lambda store: store.count(request.links.filter))
    except Busy:
        return None


def same_problem(request: PageRequest) -> Response:
    """Show a problem's debates, and the differences between two chosen ones."""
    problem, a, b = (request.query.get(key, "") for key in ("problem", "a", "b"))
    if not problem:
        raise NotFound("the address names no problem: problem=ID")
    store = request.store
    result = across(store, problem)
    blocks = across_blocks(result)
    table = blocks[-1]
    if isinstance(table, Table):  # add two links to each row, which select the debates to compare
        both = zip(table.rows, result.held, strict=True)
        rows = [(*row, *_choices(problem, one.ref, a, b)) for row, one in both]
        heads = (*table.heads, "before", "after")
        caption = f"{len(result.held)} of {result.total} debates; choose two to compare"
        blocks[-1] = Table(heads, rows, caption, table.name, table.row_name)
    if a and b:
        found = compare(read_debate(store, a), read_debate(store, b), (a, b))
        blocks.append(Section(f"{a} and {b}", comparison_blocks(found), name="comparison"))
    return show(request, "across", f"Problem {problem}", blocks)


def _choices(problem: str, ref: str, a: str, b: str) -> Iterable[Span]:
    """Yield the links that select a debate as the first or the second of the comparison."""
    for name, chosen, pair in (("before", a, (ref, b)), ("after", b, (a, ref))):
        query = (("problem", problem), ("a", pair[0]), ("b", pair[1]))
        yield Span("●" if chosen == ref else "○", link=Link(("across",), query), name=name)


def replay_list(request: PageRequest) -> Response:
    """Show the replays of a run."""
    found = replays(request.run.path)
    none = Line("This run has no replay: debate replay RUN rewards.truth_weight=0.3 makes one.", name="none")
    blocks = [table_of(REPLAYS, found, name="replays", row_name="replay") if found else none]
    return show(request, "replays", "Replays: rewards under other schemes", blocks)


def replay(request: PageRequest) -> Response:
    """Show a replay, and a debate under both schemes if the address names a debate."""
    run, id = request.run.path, request.query.get("debate", "")
    if request.replay not in {listed.name for listed in replays(run)}:
        raise NotFound(f"there is no replay {request.replay!r}")
    replayed = read_replay(run, request.replay)
    debate = replayed.debate(id) if id else None
    if id and debate is None:
        raise NotFound(f"the replay has no debate {id!r}")
    one = debate_replay_blocks(debate) if debate else []
    return show(request, "replay", f"Replay {replayed.name}", [*one, *replay_blocks(replayed)])


def judge_pairs(request: PageRequest) -> Response:
    """Show how both judges judged a run's fixed pairs under attack, or one pair if the address names it."""
    step, run, pair = request.whole_number("step"), request.run.path, request.whole_number("pair")
    links, start = request.links, request.whole_number("after") or 0
    try:
        watched = watched_judge(run, step)
        if watched is None:
            when = "" if step is None else f" after {counted(step, 'step')}"
            raise NotFound(f"this run has no judge pairs{when} (held_out.judge_pairs)")
        if pair is not None:
            attacks = attacks_on(watched, pair)
            back = ("All pairs", links("pairs", step=watched.step), "all-pairs")
            return show(request, "pair", f"Pair {pair}", pair_blocks(attacks, watched.step), pages=[back])
        blocks = pairs_blocks(watched, hack_gaps(run), start, PAGE)
    except ValueError as error:
        raise NotFound(str(error)) from error
    more = len({attack.number for attack in watched.attacks}) > start + PAGE
    pages = [("More pairs", links("pairs", step=watched.step, after=start + PAGE), "next")] if more else []
    return show(request, "pairs", "Attacks on the judge, on fixed pairs", blocks, pages=pages)


def debate_page(kind: str, title: str, read: ReadBlocks, *, of_turn: bool = False) -> Page:
    """Return the page of a view of a debate, with links to its neighbours and its other views.

    ``of_turn``: the view shows one turn to choose, and may need its token arrays.
    """

    def page(request: PageRequest) -> Response:
        record = read_debate(request.store, request.id, tokens=of_turn)
        view = debate_view(request.id, record)
        chosen = _chosen(request, view) if of_turn else None
        near, newest = None, request.links.newest
        if ":" not in request.id:
            near = {"previous": _next(request, newest=not newest), "next": _next(request, newest=newest)}
        of = f"{'' if title.endswith('?') else ':'} {view.spelled(chosen)}" if chosen else ""
        heading = f"{title}{of}, debate {request.id}" if kind != "debate" else f"Debate {request.id}"
        blocks = read(request, record, view, chosen or TurnId(0, 0))
        picked = (chosen, turns_by_round(view, chosen), named) if chosen else None
        written = request.query.get("written") == "1"
        more = {"near": near, "shown": view, "picked": picked, "written": written}
        return show(request, kind, heading, blocks, **more, empty=_empty(request, record, view))

    return page


def mark(request: PageRequest, form: Mapping[str, str]) -> Response:
    """Give the debate or a part of it a star, label or note, and return to the page."""
    kind, id, value = (form.get(name, "") for name in ("kind", "id", "value"))
    if kind not in KINDS or Place.of(id).debate != request.id:
        raise FieldError("kind" if kind not in KINDS else "id", "does not belong to this page")
    plain = value.replace("\r\n", "\n")  # browsers send lines of text with \r\n
    request.store.annotate(kind, id, plain)
    anchor = form.get("anchor", "")
    return RedirectResponse(request.address + (f"#{quote(anchor)}" if anchor else ""), 303)


def _marker(request: PageRequest, record: Record) -> Marker | None:
    return Marker.of(request.store, request.id, record, every=True)


def _faults(request: PageRequest) -> list[Block]:
    """Return a line for each annotation that cannot be read."""
    faults = request.store.annotations().faults[:20]
    return [Line(fault, "notice", name="fault") for fault in faults]


def _empty(request: PageRequest, record: Record, view: DebateView) -> set[str]:
    """Return the views of a debate that would show nothing."""
    there = {
        "graph": bool(vote_graphs(record)),
        "why": view.scored and ":" not in request.id,
        "parse": any(turn.failures for turn in view.spoken()),
        "adoption": bool(adoption_view(record).copies),
    }
    return {name for name, content in there.items() if not content}


def _next(request: PageRequest, *, newest: bool) -> str | None:
    """Return the next debate of the filter's list in the given order, or "…" while texts are searched."""
    filter, id = request.links.filter, request.id
    try:
        rows = request.look(
            ("next", id, newest), lambda store: store.debates(filter, newest=newest, after=id, limit=1)
        )
    except Busy:
        return "…"
    return rows[0].id if rows else None


def _chosen(request: PageRequest, view: DebateView) -> TurnId:
    """Return the turn in the address, else the winner's, else the first. NotFound if it does not exist."""
    turn = request.turn() or view.winner or next((turn.id for turn in view.spoken()), None)
    if turn is None or view.turn(turn) is None:
        missing = "it has no turns" if turn is None else f"it has no turn {named(turn)}"
        raise NotFound(f"debate {request.id}: {missing}")
    return turn


def _ways(*ways: tuple[str, Link, bool]) -> list[Block]:
    """Return the links to those other parts of a page that exist."""
    there = [(name, link) for name, link, exists in ways if exists]
    return [Line(Span(name, link=link), name=name.split()[0].lower()) for name, link in there]


def _rounds(request: PageRequest, record: Record, view: DebateView, turn: TurnId) -> list[Block]:
    """Return a debate, with as many rounds as fit on a page."""
    first, held = request.whole_number("round") or 0, len(view.turns[0]) if view.turns else 0
    fit = max(1, MOST_TURNS // max(1, view.agents))
    ways = _ways(
        ("Earlier rounds", to_debate(view.id, round=max(0, first - fit)), first > 0),
        ("Later rounds", to_debate(view.id, round=first + fit), held > first + fit),
    )
    shown = range(first, min(held, first + fit))
    head, *rest = debate_blocks(view, shown, whole=request.turn("full"), marks=_marker(request, record))
    branches = branches_of(request.store.run, view)
    return [*_faults(request), head, *wrong_votes(view, vote_graphs(record)), *rest, *ways, *branches]


def _votes(request: PageRequest, record: Record, view: DebateView, turn: TurnId) -> list[Block]:
    """Return the votes of each round, or of one round if there are too many."""
    graphs, round_ = vote_graphs(record), request.whole_number("round")
    if round_ is None and sum(len(graph.arrows) + len(graph.solutions) ** 2 for graph in graphs) > MOST_CELLS:
        round_ = graphs[-1].round
    shown = [graph for graph in graphs if round_ in (None, graph.round)]
    others = [graph.round for graph in graphs if graph not in shown]
    links = {other: to_debate(view.id, "graph", round=other) for other in others}
    ways = _ways(*((f"Votes on {view.round_name(other)}", link, True) for other, link in links.items()))
    return [*_faults(request), *votes_blocks(view, shown, _marker(request, record)), *ways]


def _tokens(request: PageRequest, record: Record, view: DebateView, turn: TurnId) -> list[Block]:
    """Return one page of the tokens of a turn."""
    found = token_view(record, turn, evaluation=evaluation_of(request.store.run))
    start = min(request.whole_number("from") or 0, max(0, len(found.tokens) - 1))
    before, after = max(0, start - MOST_TOKENS), start + MOST_TOKENS
    ways = _ways(
        ("Earlier tokens", to_debate(view.id, "tokens", turn, **{"from": before}), start > 0),
        ("More tokens", to_debate(view.id, "tokens", turn, **{"from": after}), after < len(found.tokens)),
    )
    return [*token_blocks(found, start, MOST_TOKENS), *ways]


def _why(request: PageRequest, record: Record, view: DebateView, turn: TurnId) -> list[Block]:
    if ":" in request.id:
        raise NotFound(f"debate {request.id} is not from training; this page explains training rewards")
    config, note = config_of(request.store.run)
    return why_blocks(why(request.store, config, request.id, turn, note=note))


def _branch(request: PageRequest, record: Record, view: DebateView, turn: TurnId) -> list[Block]:
    """Return the effect of another vote or of a stored branch, or the ways to branch the debate at a turn."""
    store, vote, branch = request.store, request.query.get("vote", ""), request.query.get("branch", "")
    if ":" in request.id:
        raise NotFound(f"debate {request.id} is not from training, so it cannot be branched")
    config, note = config_of(store.run)
    if not vote and not branch:
        notes = [Line(f"note: {note}", "notice", name="note")] if note else []
        return [*notes, *what_if_blocks(store.run, record, view, turn)]
    if config is None:
        raise NotFound(note)
    scheme = scheme_of(config)
    try:
        found = (
            stored_branch(store, scheme, branch)
            if branch
            else vote_effect(store, scheme, request.id, turn, vote)
        )
    except ValueError as error:
        raise NotFound(str(error)) from error
    return branch_blocks(found)


def _prompt(request: PageRequest, record: Record, view: DebateView, turn: TurnId) -> list[Block]:
    run = request.store.run
    return prompt_blocks(view, DebatePrompts(record.debate, run, kept_before(run, request.id)), turn)


PAGES: dict[str, Page] = {
    "/": front,
    "/run/{name}/": steps,
    "/runs.json": runs_json,
    "/run/{name}/metrics.json": metrics_json,
    "/run/{name}/fields.json": fields_json,
    "/run/{name}/{action}.json": action_json,
    "/run/{name}/settings": settings,
    "/run/{name}/report": report,
    "/run/{name}/evaluations": evaluations,
    "/run/{name}/group": step_groups,
    "/run/{name}/debates": debate_list,
    "/run/{name}/debate/{id}": debate_page("debate", "Debate", _rounds),
    "/run/{name}/debate/{id}/graph": debate_page("graph", "Votes", _votes),
    "/run/{name}/debate/{id}/adoption": debate_page(
        "adoption", "Answers", lambda request, record, view, turn: answers_blocks(view, adoption_view(record))
    ),
    "/run/{name}/debate/{id}/parse": debate_page(
        "parse", "Malformed", lambda request, record, view, turn: parsing_blocks(view, record)
    ),
    "/run/{name}/debate/{id}/tokens": debate_page("tokens", "Tokens", _tokens, of_turn=True),
    "/run/{name}/debate/{id}/why": debate_page("why", "Why this reward?", _why, of_turn=True),
    "/run/{name}/debate/{id}/branch": debate_page("branch", "Branch", _branch, of_turn=True),
    "/run/{name}/debate/{id}/prompt": debate_page("prompt", "Prompt", _prompt, of_turn=True),
    "/run/{name}/across": same_problem,
    "/run/{name}/pairs": judge_pairs,
    "/run/{name}/replays": replay_list,
    "/run/{name}/replays/{replay}": replay,
}
"""The pages by their addresses."""
FORMS = {f"/run/{{name}}/debate/{{id}}{view}": mark for view in ("", "/graph")}
"""What a form of a page does, by the address of the page."""
