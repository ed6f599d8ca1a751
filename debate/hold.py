"""Hold one debate by the protocol."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TypeAlias

from msgspec import UNSET, UnsetType

from debate.compression import Compressor, without_tokens
from debate.concurrency import stops_released, together
from debate.config import DebateConfig
from debate.early_stop import Agreed, same_as_written, stopped_after, stops
from debate.kept import NOTHING, Kept
from debate.policy import opens_thinking, runs_programs, seat_at, speaker_at
from debate.prompting.fitting import context_budget
from debate.prompting.prompt import (
    Past,
    Prompt,
    agent_prompt,
    conversation_budget,
    next_prompt,
    summary_prompt,
)
from debate.prompting.rendering import Entry
from debate.prompting.seating import Seating, public_entries, seat_debate
from debate.prompting.shown import (
    asks_pairs,
    holds_criticism,
    holds_solutions,
    public_summary,
    rounds_held,
    rounds_shown,
    waves,
)
from debate.reply import read_reply, untagged_rule
from debate.seeds import derive_seed
from debate.swiss import Pair, next_pairs, result_of, same_answers
from debate.types import (
    SUMMARIZER,
    Completion,
    Compression,
    Debate,
    Message,
    ParsedTurn,
    Policy,
    Problem,
    SampleRequest,
    Summary,
    Swapped,
    Turn,
    TurnId,
    Vote,
)

OnSaid: TypeAlias = Callable[[Turn | Summary, tuple[Message, ...]], None]
"""Called with each turn or summary of a debate as it arrives, and with the messages that prompted it."""


def unheard(said: Turn | Summary, read: tuple[Message, ...]) -> None:
    """Ignore the turn or summary."""


async def hold_debate(
    problem: Problem,
    policy: Policy,
    config: DebateConfig,
    *,
    seed: int,
    name: str | None = None,
    summarizer: Policy | None = None,
    agreed: Agreed = same_as_written,
    on_said: OnSaid = unheard,
) -> Debate:
    """Hold one debate and return it with every turn and every vote as cast.

    The result depends only on the arguments if the policy's replies depend only on the requests' seeds.
    ``name`` identifies the debate in requests; it must be unique among the debates that use the policy at the
    same time. ``summarizer`` writes summaries and compressions if ``config`` asks for them; None uses the
    policy itself. ``agreed`` returns whether all answers of a round are the same; after ``config.min_rounds``
    rounds, agreement ends the debate. ``on_said`` is called with each turn or summary as it arrives, and with
    the messages that prompted it.

    An exception of a policy ends the debate and is raised here. PromptTooLongError if a prompt cannot be cut
    to fit.
    """
    with seat_at(policy), stops_released():
        called = name or debate_name(seed, problem.id)
        return await debate_in_seat(
            problem, policy, config, seed, called, summarizer or policy, agreed, on_said
        )


async def debate_in_seat(
    problem: Problem,
    policy: Policy,
    config: DebateConfig,
    seed: int,
    name: str,
    summarizer: Policy,
    agreed: Agreed,
    on_said: OnSaid = unheard,
    kept: Kept = NOTHING,
) -> Debate:
    """Hold one debate within an entered seat of the policy: all rounds, then the ballot if one is due.

    ``kept``: the part of a stored debate that is not regenerated.
    """
    if config.tools != "none" and not runs_programs(policy):
        raise ValueError(
            f'debate.tools = "{config.tools}": this policy cannot run programs; see debate_rl.inference.tools'
        )
    config = config.of_level(problem.level)
    personas = None if kept.debate is None else kept.debate.personas
    seating, version = seat_debate(problem, config, seed, personas=personas), policy.version
    voices = [speaker_at(policy, config.seat(agent)) for agent in range(config.num_agents)]
    turns: list[Turn] = []
    old: dict[TurnId, Turn] = {}  # the kept turns
    summaries: list[Summary] = []
    compressions: list[Compression] = []
    past: list[list[Entry]] = []  # texts that other agents may see, (round, N)
    held: list[tuple[int, ...]] = [()] * config.num_agents  # the tokens of each agent's conversation
    while (round_ := len(past)) < rounds_held(seating.config):
        summary = kept.summary(round_)
        if round_ > kept.turn.round:
            summary = await _summarize(seating, past, round_, summarizer, on_said, seed=seed, name=name)
        summaries += [summary] if summary else []
        spoken: list[Turn] = []
        solved = turns[-config.num_agents :]
        answers = same_answers(problem, solved, agreed) if asks_pairs(seating.config, round_) else []
        while asked := _next_wave(seating, round_, spoken, answers, seed):
            seen = [*past, public_entries(seating, spoken, ())] if spoken else past
            told = kept.turns(asked, round_, spoken)
            spoken, told_by = [*spoken, *told], {turn.id.agent for turn in told}
            old |= {turn.id: turn for turn in told}
            prompts = {
                agent: _turn_prompt(
                    seating, seen, TurnId(agent, round_), voices[agent], summary, len(held[agent]), pair
                )
                for agent, pair in asked.items()
                if agent not in told_by
            }
            requests = {
                agent: turn_request(seating, prompt, TurnId(agent, round_), seed, name, prefix=held[agent])
                for agent, prompt in prompts.items()
            }
            spoken += await together(
                [
                    _spoken(seating, policy, request, prompts[agent], on_said)
                    for agent, request in requests.items()
                ]
            )
        spoken.sort(key=lambda turn: turn.id.agent)
        turns += spoken
        if config.conversation:
            held = [turn.completion.prompt_tokens + turn.completion.tokens for turn in spoken]
        if stops(seating.config, problem, spoken, agreed):
            seating = replace(seating, config=stopped_after(config, round_ + 1))
        fresh = [turn for turn in spoken if turn.id not in old or turn.id == kept.turn]
        short = kept.compressions(turn for turn in spoken if turn.id in old)
        short += await Compressor(summarizer, agreed, seating, seed, name).compress(fresh)
        compressions += sorted(short, key=lambda one: one.turn.agent)
        past.append(public_entries(seating, spoken, short))
    fresh = [turn for turn in turns if turn.id not in old]
    swapped = await _asked_again(seating, past, fresh, policy, seed, name) if config.ask_swapped else ()
    swapped = (*kept.swapped(old), *swapped)
    saved = config.num_rounds - seating.config.num_rounds
    votes = (kept.votes(turn.id) if turn.id in old else votes_of(turn, seating.handles) for turn in turns)
    return Debate(
        problem,
        seating.personas,
        tuple(turns),
        tuple(chain.from_iterable(votes)),
        seed,
        version,
        seating.config,
        tuple(summaries),
        saved or UNSET,
        tuple(compressions) or UNSET,
        tuple(sorted(swapped, key=lambda one: one.turn.agent)) or UNSET,
    )


def _next_wave(
    seating: Seating, round_: int, spoken: Sequence[Turn], answers: Sequence[int], seed: int
) -> Mapping[int, Pair | None]:
    """Return the agents that speak next in a round, each with the pair to compare (None unless Swiss).

    ``spoken``: the round's turns so far. ``answers``: the argument of ``next_pairs`` for a Swiss ballot,
    otherwise empty.
    """
    if answers:
        said = {turn.id.agent: result_of(turn, votes_of(turn, seating.handles)) for turn in spoken}
        return next_pairs(answers, said, seed=seed)
    done = {turn.id.agent for turn in spoken}
    return dict.fromkeys(next((wave for wave in waves(seating.config, round_) if done.isdisjoint(wave)), ()))


async def _asked_again(
    seating: Seating, past: Past, turns: Sequence[Turn], policy: Policy, seed: int, name: str
) -> tuple[Swapped, ...]:
    """Return a second ballot of each judge of the final ballot, with the solutions in reverse order."""
    config, other = seating.config, derive_seed(seed, "swapped")
    turned = replace(seating, orders=tuple(order[::-1] for order in seating.orders))
    asked: list[Coroutine[object, object, Turn]] = []
    for ballot in turns:
        agent, round_ = ballot.id
        if round_ == config.num_rounds:
            pair = [turn.agent for turn in ballot.compared] if asks_pairs(config, round_) else None
            budget = context_budget(speaker_at(policy, config.seat(agent)), config)
            prompt = agent_prompt(turned, past[:round_], agent, round_, budget, pair=pair)
            request = turn_request(turned, prompt, ballot.id, other, name)
            asked.append(_spoken(turned, policy, request, prompt, unheard))
    said = await together(asked) if asked else []
    return tuple(
        Swapped(
            turn.id, turn.compared, without_tokens(turn.completion), tuple(votes_of(turn, seating.handles))
        )
        for turn in said
    )


async def _spoken(
    seating: Seating, policy: Policy, request: SampleRequest, prompt: Prompt, on_said: OnSaid
) -> Turn:
    """Sample the reply to one request and return its turn."""
    reply = (await policy.sample(request)).whole()
    in_thinking = opens_thinking(speaker_at(policy, request.seat), request.messages)
    turn = read_turn(seating, request, prompt, reply, in_thinking=in_thinking)
    on_said(turn, request.messages)
    return turn


def _turn_prompt(
    seating: Seating,
    past: Past,
    turn: TurnId,
    policy: Policy,
    summary: Summary | None,
    held: int,
    pair: Pair | None,
) -> Prompt:
    """Return the prompt of one turn.

    ``held``: the number of tokens already in the agent's conversation; 0 without one.
    """
    if seating.config.conversation:
        budget = conversation_budget(policy, seating, turn.agent, turn.round, held=held)
        return next_prompt(seating, past, turn.agent, turn.round, budget)
    budget = context_budget(policy, seating.config)
    return agent_prompt(seating, past, turn.agent, turn.round, budget, summary=summary, pair=pair)


async def _summarize(
    seating: Seating, past: Past, round_: int, policy: Policy, on_said: OnSaid, *, seed: int, name: str
) -> Summary | None:
    """Return the summary of the past rounds shown in this round, the same for all agents.

    None if no past round is shown or summaries are off. The summarizer sees what the agents would see: the
    problem and public, anonymous texts. It is not an agent, and its output is not trained on.
    """
    config, wanted = seating.config, seating.config.summary
    if not wanted.enabled or not rounds_shown(round_, config.history_rounds):
        return None
    budget = context_budget(policy, config, max_tokens=wanted.max_tokens)
    prompt = summary_prompt(seating, past, round_, budget)
    request = SampleRequest(
        messages=prompt.messages,
        temperature=wanted.temperature,
        max_tokens=wanted.max_tokens,
        stop=config.stop,
        seed=derive_seed(seed, "summary", round_),
        debate=name,
        turn=TurnId(SUMMARIZER, round_),
        thinking_tokens=config.summary_thinking,
        top_p=config.top_p,
        top_k=config.top_k,
    )
    reply = (await policy.sample(request)).whole()
    text = public_summary(reply.text, in_thinking=opens_thinking(policy, prompt.messages))
    summary = Summary(round_, prompt.shown, reply, text, prompt.cut, cut_length_of(prompt))
    on_said(summary, prompt.messages)
    return summary


def turn_request(
    seating: Seating,
    prompt: Prompt,
    turn: TurnId,
    seed: int,
    name: str,
    *,
    prefix: tuple[int, ...] = (),
) -> SampleRequest:
    """Return the request for one turn, with the persona's temperature and a seed specific to this turn."""
    config = seating.config
    return SampleRequest(
        messages=prompt.messages,
        temperature=seating.personas[turn.agent].temperature,
        max_tokens=config.max_tokens,
        stop=(*config.stop, *prompt.stop),
        seed=derive_seed(seed, "sample", turn.round, turn.agent),
        debate=name,
        turn=turn,
        thinking_tokens=config.thinking_tokens,
        top_p=config.top_p,
        top_k=config.top_k,
        prefix=prefix,
        seat=config.seat(turn.agent),
    )


def read_turn(
    seating: Seating,
    request: SampleRequest,
    prompt: Prompt,
    completion: Completion,
    *,
    in_thinking: bool = False,
) -> Turn:
    """Return the turn made from a reply, parsed with the labels of its debate."""
    return Turn(
        id=request.turn,
        handle=seating.handles[request.turn.agent],
        shown=prompt.shown,
        completion=completion,
        parsed=parsed_turn(seating, request.turn, completion, due=prompt.due, in_thinking=in_thinking),
        compared=prompt.compared,
        cut=prompt.cut,
        ballot=not holds_solutions(seating.config, request.turn.round),
        cut_length=cut_length_of(prompt),
    )


def parsed_turn(
    seating: Seating, turn: TurnId, completion: Completion, *, due: bool, in_thinking: bool = False
) -> ParsedTurn:
    """Return the parsed reply of a turn. ``due``: its prompt asked for comparisons."""
    handle = seating.handles[turn.agent]
    return read_reply(
        completion,
        handles=seating.handles,
        own=None if seating.config.judge_own else handle,
        due=due,
        in_thinking=in_thinking,
        ballot=not holds_solutions(seating.config, turn.round),
        kind=seating.problem.kind,
        untagged=untagged_rule(seating.config, seating.texts, turn.round),
        critic=handle if holds_criticism(seating.config, turn.round) else None,
    )


def cut_length_of(prompt: Prompt) -> int | UnsetType:
    """Return the ``Turn.cut_length`` of a prompt, which is UNSET if no text was shortened."""
    return UNSET if prompt.cut_length is None else prompt.cut_length


def votes_of(turn: Turn, handles: Sequence[str]) -> Iterator[Vote]:
    """Yield the votes that a turn cast on turns it was shown, including repeated votes.

    A handle refers to the newest shown turn of its agent, and credit goes to exactly that turn.
    """
    meant = {handles[target.agent].upper(): target for target in turn.compared}
    for ballot in turn.parsed.ballots:
        left, right = meant.get(ballot.left.upper()), meant.get(ballot.right.upper())
        if left and right:
            yield Vote(turn.id, left, right, ballot.outcome, ballot.span)


def debate_name(number: int, problem_id: str) -> str:
    """Return the name of a debate in requests: a number, which sorts the debates, and the problem's id.

    >>> debate_name(12, "gsm8k/7")
    '000012:gsm8k/7'
    """
    return f"{number:06d}:{problem_id}"
