"""Build the prompts that agents read in a turn. Start with ``agent_prompt``."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from msgspec import UNSET

from debate.config import DebateConfig
from debate.policy import continuation_counter, token_counter
from debate.prompting.fitting import (
    ContextBudget,
    Cut,
    History,
    barest_entry,
    context_budget,
    fit_history,
    require_fit,
)
from debate.prompting.rendering import (
    SECTIONS,
    Entry,
    Frame,
    Task,
    answer_entry,
    history_text,
    one_text,
    problem_text,
    shot_reply,
)
from debate.prompting.seating import Seating, seat_debate
from debate.prompting.shown import (
    comparable,
    groups_shown,
    holds_criticism,
    holds_votes,
    reads,
    rounds_held,
    speakers,
)
from debate.prompting.texts import Fill, PromptTexts
from debate.protocols import GAMES
from debate.types import WHOLE_RESPONSE, WITHOUT_TRUTH, Message, Policy, Problem, Summary, TurnId

Past: TypeAlias = Sequence[Sequence[Entry]]
"""What others may see of the rounds so far, (round, N)."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt, and what it shows: see ``Turn.shown``, ``compared``, ``cut`` and ``cut_length``.

    ``stop``: the strings at which the reply ends, including the closing tag of the last section that is due.
    """

    messages: tuple[Message, ...]
    task: Task | Literal["summary"]
    shown: tuple[TurnId, ...] = ()
    compared: tuple[TurnId, ...] = ()
    cut: int = 0
    stop: tuple[str, ...] = ()
    cut_length: int | None = None

    @property
    def due(self) -> bool:
        """Whether the prompt asks for comparisons."""
        return len(self.compared) >= 2


def agent_prompt(
    seating: Seating,
    past: Past,
    agent: int,
    round_: int,
    budget: ContextBudget | Cut,
    *,
    summary: Summary | None = None,
    pair: Collection[int] | None = None,
) -> Prompt:
    """Return one agent's prompt in one round, cut to fit if necessary. PromptTooLongError if it cannot fit.

    A ``Cut`` instead of a budget repeats an earlier cut, to rebuild a prompt. A ``summary`` is shown instead
    of the rounds that it summarizes. With a ``pair`` of agents, only their work is shown.
    """
    rounds = entries_shown(seating, past, agent, round_)
    if pair is not None:
        rounds = [[entry for entry in entries if entry.turn.id.agent in pair] for entries in rounds]
    shown = summary.shown if summary else tuple(entry.turn.id for entries in rounds for entry in entries)
    frame = _agent_frame(seating, agent, round_, shown)
    return _prompt(frame, fit_history(frame, summary or rounds, seating, budget))


def next_prompt(seating: Seating, past: Past, agent: int, round_: int, budget: ContextBudget | Cut) -> Prompt:
    """Return the next prompt of an agent's conversation: a complete prompt in round 0, later one message.

    A message shows what the others wrote in the newest round, and sets the task. Earlier rounds and the
    agent's own replies are already in the conversation: they count as shown and cannot be cut.
    """
    if not round_:
        return agent_prompt(seating, past, agent, round_, budget)
    rounds = entries_shown(seating, past, agent, round_)
    shown = tuple(entry.turn.id for entries in rounds for entry in entries)
    frame = _next_frame(seating, agent, round_, shown)
    others = [entry for entry in rounds[-1] if entry.turn.id.agent != agent]
    return replace(_prompt(frame, fit_history(frame, [others], seating, budget)), shown=shown)


def conversation_budget(
    policy: Policy, seating: Seating, agent: int, round_: int, *, held: int
) -> ContextBudget:
    """Return the budget for the next prompt of a conversation that already has ``held`` tokens.

    The budget reserves the minimum that later rounds need: their replies, and their messages with every shown
    text reduced to the mark of a cut. These messages (``fitting.BAREST``) do not depend on what is written,
    so a conversation whose first prompt fits can always be held to its end.
    """
    budget, count = context_budget(policy, seating.config), continuation_counter(policy)
    counted = count if round_ else budget.count
    if budget.tokens is None:
        return replace(budget, count=counted)
    later = range(round_ + 1, rounds_held(seating.config))
    free = sum(budget.reply + count(_barest_next(seating, agent, number).messages) for number in later)
    kept = "all replies and the later messages"
    return ContextBudget(budget.tokens - held - free, counted, budget.reply + free, kept)


def summary_prompt(seating: Seating, past: Past, round_: int, budget: ContextBudget | Cut) -> Prompt:
    """Return the prompt that asks for a summary of the rounds shown in a round, the same for all viewers."""
    rounds = entries_shown(seating, past, 0, round_)
    frame = _summary_frame(seating)
    return _prompt(frame, fit_history(frame, rounds, seating, budget))


def compression_prompt(seating: Seating, solution: str) -> tuple[Message, ...]:
    """Return the messages that ask for a shorter version of a solution."""
    shown = seating.texts.compress(solution=one_text(seating.texts, solution))
    return (Message("user", seating.opening + shown),)


def entries_shown(seating: Seating, past: Past, agent: int, round_: int) -> list[list[Entry]]:
    """Return the entries that a prompt shows before any cut, by groups of rounds, in the viewer's order."""
    order = seating.orders[agent]
    config, viewer = seating.config, TurnId(agent, round_)

    said = [{entry.turn.id.agent: entry for entry in entries} for entries in past]
    return [
        [
            _as_read(seating, said[number][other], round_)
            for number in group
            for other in order
            if reads(config, viewer, TurnId(other, number))
        ]
        for group in groups_shown(config, round_, agent)
    ]


def _as_read(seating: Seating, entry: Entry, round_: int) -> Entry:
    """Return an entry as it is shown in a round.

    The judges of a consultancy see the consultant's whole solution and only the answer of the other one.
    """
    if seating.consultant in (None, entry.turn.id.agent) or round_ < seating.config.num_rounds:
        return entry
    return answer_entry(seating.texts, entry.turn)


def _prompt(frame: Frame, history: History) -> Prompt:
    messages = frame.messages(history.text)
    return Prompt(
        messages, frame.task, history.shown, frame.compared, history.cut, frame.stop, history.length
    )


def _agent_frame(seating: Seating, agent: int, round_: int, shown: Sequence[TurnId]) -> Frame:
    """Return the parts before and after the history in an agent's prompt. The history may be cut later.

    Text shared by all agents comes first (rules, problem, history in one order), and the agent's own part
    comes last (instructions, handle, task), so that an engine with a prefix cache processes the shared part
    once.
    """
    config = seating.config
    alone = config.num_agents == 1
    votes = not alone and holds_votes(config, round_)
    compared = comparable(shown, agent, judge_own=config.judge_own) if votes else ()
    task = which_task(config, round_, shows=bool(shown), due=len(compared) >= 2)
    behind = _own_part(seating, agent, task, compared)
    return Frame(
        task,
        system=_rules(seating),
        before=seating.opening,
        behind=behind,
        compared=compared,
        stop=_stop_strings(seating, task),
        examples=_examples(seating, behind) if task == "opening" else (),
    )


def _rules(seating: Seating) -> str:
    """Return the system message of an agent."""
    texts, config = seating.texts, seating.config
    if config.num_agents == 1:
        rules = texts.system_alone
    else:
        rules = texts.system_critique if config.protocol == "critique" else texts.system
    if config.tools == "none":
        return rules
    return "\n\n".join(filter(None, (rules.rstrip("\n"), texts.tools(calls=config.tool_calls).strip("\n"))))


def _stop_strings(seating: Seating, task: Task) -> tuple[str, ...]:
    """Return the stop strings of the prompt set, and the closing tag of the last section that is due."""
    closing = (f"</{SECTIONS[task][-1]}>",) if seating.texts.sections else ()
    return (*seating.texts.stop, *closing) if seating.config.prompt_stops else closing


def _examples(seating: Seating, behind: str) -> tuple[Message, ...]:
    """Return the problem's shots as separate turns, each with the same task as the problem."""
    texts, messages = seating.texts, list[Message]()
    for shot in () if seating.problem.shots is UNSET else seating.problem.shots:
        example = Problem("", shot.question, choices=shot.choices)
        messages += [
            Message("user", problem_text(texts, example) + behind),
            Message("assistant", shot_reply(texts, shot)),
        ]
    return tuple(messages)


def _next_frame(seating: Seating, agent: int, round_: int, shown: Sequence[TurnId]) -> Frame:
    """Return the parts before and after the newest round in a message of a conversation."""
    return replace(_agent_frame(seating, agent, round_, shown), system="", before="", examples=())


def _summary_frame(seating: Seating) -> Frame:
    """Return the parts before and after the history in the summarizer's prompt. No viewer, no persona."""
    return Frame("summary", system="", before=seating.opening, behind=seating.texts.summarize)


def which_task(config: DebateConfig, round_: int, *, shows: bool, due: bool) -> Task:
    """Return an agent's task: only a solution if nothing is shown, and votes only if comparisons are due.

    >>> [which_task(DebateConfig(num_rounds=2), r, shows=r > 0, due=r > 0) for r in range(3)]
    ['opening', 'debate', 'ballot']
    >>> critique = DebateConfig(protocol="critique", num_rounds=3)
    >>> [which_task(critique, r, shows=r > 0, due=r % 2 > 0) for r in range(4)]
    ['opening', 'critique', 'revision', 'ballot']
    >>> which_task(DebateConfig(protocol="zero_sum", num_rounds=1), 0, shows=True, due=False)
    'rival'
    """
    if not shows:
        return "opening"
    if round_ == config.num_rounds:
        return "ballot"
    if config.protocol in GAMES:
        return "rival"
    if holds_criticism(config, round_):
        return "critique" if due else "critique_unranked"
    if config.protocol == "critique":
        return "revision"
    return "debate" if due else "review"


def _own_part(seating: Seating, agent: int, task: Task, compared: Sequence[TurnId]) -> str:
    """Return the agent's own part: its instructions, its handle and its task, but never its name."""
    texts, config = seating.texts, seating.config
    alone = config.num_agents == 1 and task == "opening"
    piece: Fill = texts.opening_alone if alone else getattr(texts, task)
    return piece(
        handle=seating.handles[agent],
        instructions=seating.personas[agent].instructions,
        answer=_answer_rule(texts, seating.problem),
        own=texts.own_included if config.judge_own else texts.own_excluded,
        compared=", ".join(seating.handles[turn.agent] for turn in compared),
    )


def _answer_rule(texts: PromptTexts, problem: Problem) -> str:
    """Return how to give the answer. Open problems and instructions have no boxed answer."""
    if problem.kind in WITHOUT_TRUTH or problem.answer is None:
        return texts.answer_open
    if problem.kind in WHOLE_RESPONSE:
        return texts.answer_whole
    return texts.answer_choice if problem.kind == "choice" else texts.answer_checked


def check_fits(problem: Problem, policy: Policy, config: DebateConfig) -> None:
    """Raise PromptTooLongError if a prompt of the problem cannot fit, however much its history is cut.

    To check whole data sets quickly, only the longest prompt (in characters) of the debate is counted, with
    marks instead of all texts in its history.
    """
    budget = context_budget(policy, config)
    if budget.tokens is None:
        return
    seating = seat_debate(problem, config, 0)
    if config.conversation:
        for agent in range(config.num_agents):
            next_prompt(seating, (), agent, 0, conversation_budget(policy, seating, agent, 0, held=0))
        return
    _require_longest(_barest_prompts(seating), budget, problem)
    if config.summary.enabled:
        budget = context_budget(policy, config, max_tokens=config.summary.max_tokens)
        _require_longest(_barest_summary_prompts(seating), budget, problem)


def opening_tokens(problem: Problem, policy: Policy, config: DebateConfig) -> int:
    """Return the token count of the longest first prompt of a problem's debate."""
    seating = seat_debate(problem, config, 0)
    frames = (_agent_frame(seating, agent, 0, ()) for agent in range(config.num_agents))
    longest = max((_prompt(frame, History((), "")) for frame in frames), key=_characters)
    return token_counter(policy)(longest.messages)


def _require_longest(prompts: Iterator[Prompt], budget: ContextBudget, problem: Problem) -> None:
    """Raise PromptTooLongError if the prompt with the most characters does not fit."""
    longest = max(prompts, key=_characters, default=None)
    if longest:
        require_fit(longest.messages, longest.task, problem, budget)


def _barest_prompts(seating: Seating) -> Iterator[Prompt]:
    """Yield the agents' prompts of a debate in which every shown text is replaced by its mark."""
    for round_ in range(rounds_held(seating.config)):
        for agent in speakers(seating.config, round_):
            entries = _barest_round(seating, round_, agent)
            history = _barest_history(seating, entries, round_)
            yield _prompt(_agent_frame(seating, agent, round_, history.shown), history)


def _barest_next(seating: Seating, agent: int, round_: int) -> Prompt:
    """Return an agent's message of a later round of a conversation, with marks instead of all shown texts."""
    newest = _barest_round(seating, round_, agent)
    history = _barest_history(seating, [entry for entry in newest if entry.turn.id.agent != agent], 1)
    return _prompt(_next_frame(seating, agent, round_, [entry.turn.id for entry in newest]), history)


def _barest_summary_prompts(seating: Seating) -> Iterator[Prompt]:
    """Yield the summarizer's prompts, with marks instead of all shown texts."""
    for round_ in range(rounds_held(seating.config)):
        if newest := _barest_round(seating, round_, 0):
            yield _prompt(_summary_frame(seating), _barest_history(seating, newest, round_))


def _barest_round(seating: Seating, round_: int, agent: int) -> list[Entry]:
    """Return the newest round in an agent's prompt, in the agent's order, with marks instead of texts.

    In a critique the newest round is a group of rounds.
    """
    config, viewer = seating.config, TurnId(agent, round_)
    return [
        barest_entry(seating.texts, turn, seating.handles[other], critic=holds_criticism(config, number))
        for group in groups_shown(config, round_, agent)[-1:]
        for number in group
        for other in seating.orders[agent]
        if reads(config, viewer, turn := TurnId(other, number))
    ]


def _barest_history(seating: Seating, newest: Sequence[Entry], round_: int) -> History:
    text = history_text(seating.texts, [entry.text for entry in newest], left_out=round_ > 1)
    return History(tuple(entry.turn.id for entry in newest), text)


def _characters(prompt: Prompt) -> int:
    return sum(len(message.content) for message in prompt.messages)
