"""Hold blind pairwise votes on rollouts: the responses to a problem are the solutions of one debate.

Every response is the solution of one agent in round 0. Then the judge votes with the ballots of a debate:
each ballot shows two solutions as the work of others, and the pairs are drawn by Swiss rounds. A judge whose
protocol has no final ballot was trained to compare all solutions while it writes its own; it votes in
the same way here. If there are only two responses, each ballot shows both, one as the judge's own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from debate import Completion, Debate, DebateConfig, Policy, SampleRequest, run_debates
from debate.policies import ScriptedPolicy
from debate.prompting.fitting import PromptTooLongError
from debate.prompting.prompt import check_fits
from debate.seeds import debate_seed
from debate.types import FailureReason, Message
from debate_rl.evaluation.folder import OPEN_REPLIES, KeptReplies
from debate_rl.evaluation.grading import Grades, agreement, answer_of, grade_turn, stored_mode
from debate_rl.evaluation.play import Tell, Unopened, counted_replies
from debate_rl.inference.wrapped import WrappedPolicy
from debate_rl.judging.rollouts import Group, Response, read_rollouts
from debate_rl.runs.provenance import checksum
from debate_rl.smollm2 import cache_folder
from debate_rl.strategies.selection import longest_list
from debate_rl.strategies.work import of_one_round
from envs import Environment, load_environment
from envs.types import Mode
from rewards.types import Truth
from transcripts import Record, ShardWriter, read_records
from transcripts.files import shard_name

MODE: Mode = "lenient"
"""How answers are found in responses, which follow no prompt of ours."""
DEBATES = "debates"
MOST_AGENTS = 64
"""Maximum number of agents of a debate."""


class GivenSolutions(WrappedPolicy):
    """A policy whose solutions are given: ``responses[i]`` are those of the debate with number i."""

    def __init__(self, judge: Policy, responses: Sequence[Sequence[Response]]) -> None:
        super().__init__(judge)
        self._responses = responses
        self._asked: set[tuple[Message, ...]] = set()

    async def sample(self, request: SampleRequest) -> Completion:
        """Return the response in round 0, otherwise the judge's reply."""
        if request.turn.round:
            return await self.inner.sample(request)
        self._asked.add(request.messages)
        given = self._responses[int(request.debate.partition(":")[0])][request.turn.agent]
        end, begin = given.text.find("</think>"), given.text.find("<think>")
        text = f"<think>{given.text}" if end >= 0 and not 0 <= begin < end else given.text
        return Completion((), (), (), text, "length" if given.cut else "stop", 0)

    def opens_thinking(self, messages: tuple[Message, ...]) -> bool:
        """Return whether the judge's reply begins in a think block. Responses have their own tags."""
        inner: Callable[[object], bool] | None = getattr(self.inner, "opens_thinking", None)
        return messages not in self._asked and inner is not None and inner(messages)


def ballot_protocol(judge: DebateConfig | None, responses: int) -> DebateConfig:
    """Return the protocol in which a judge votes on this many responses; no votes if ``judge`` is None."""
    if judge is None:
        judge = DebateConfig(num_agents=responses, num_rounds=1, final_ballot=False)
        return DebateConfig.model_validate(dict(_named(judge)) | {"untagged": True})
    pairs = judge.final_ballot and responses >= 3
    protocol = of_one_round(
        judge,
        protocol="debate",
        num_agents=responses,
        num_rounds=1 if judge.final_ballot else 2,
        ballot="swiss" if pairs else "all",
        judge_own=responses == 2,
        untagged=True,
    )
    return DebateConfig.model_validate(dict(_named(protocol)))


def _named(protocol: DebateConfig) -> DebateConfig:
    """Return the protocol with agents named by their responses. A prompt never has these names."""
    personas = enumerate(protocol.agent_personas, start=1)
    named = tuple(replace(persona, name=f"Response {number}") for number, persona in personas)
    return protocol.model_copy(update={"personas": named})


def chosen(groups: Sequence[Group], judge: DebateConfig, most: int) -> tuple[list[Group], dict[str, int]]:
    """Return the groups to judge, each with its first responses, and what is left out, by reason.

    ``most``: maximum number of responses to a problem. The judge's labels may allow fewer.
    """
    most = min(most, longest_list(judge))
    kept = [one._replace(responses=one.responses[:most]) for one in groups if len(one.responses) > 1]
    left_out = {
        "problems with one response": len(groups) - len(kept),
        f"responses after the first {most} to a problem": sum(
            max(0, len(one.responses) - most) for one in groups
        ),
    }
    return kept, {why: count for why, count in left_out.items() if count}


def hold_votes(
    groups: Sequence[Group],
    judge: DebateConfig | None,
    policy: Policy | Unopened,
    environment: Environment,
    folder: Path,
    *,
    seed: int,
    max_live: int | None = None,
    tell: Tell = lambda *_: None,
) -> list[Record]:
    """Return a debate for each group whose prompts fit the judge's context, in the order of the groups.

    Each is stored in ``folder`` when it ends; stored debates are not held again. The seed decides labels,
    orders and pairs. ``judge``: the protocol whose ballots are used; None: no votes.
    """
    shard = folder / DEBATES / shard_name(0)
    number_of = {debate_seed(seed, index, one.problem): index for index, one in enumerate(groups)}
    stored = read_records(shard, on_torn=lambda _: None) if shard.exists() else ()
    done = {number_of[one.debate.seed]: one for one in stored if one.debate.seed in number_of}
    left = [index for index in range(len(groups)) if index not in done]
    tell(DEBATES, len(done), len(groups), len(done))
    if left:
        opened = policy.open() if isinstance(policy, Unopened) else policy
        by_size: dict[int, list[int]] = {}
        for index in left:
            size = len(groups[index].responses)
            with suppress(PromptTooLongError):
                check_fits(groups[index].problem, opened, ballot_protocol(judge, size))
                by_size.setdefault(size, []).append(index)
        ballots, before = sum(size * len(numbers) for size, numbers in by_size.items()), len(done)

        def count(replies: int) -> None:
            tell(DEBATES, len(done), len(groups), before + len(left) * min(1.0, replies / ballots))

        with ExitStack() as stack:
            writer = stack.enter_context(ShardWriter(folder / DEBATES, 0))
            kept = stack.enter_context(KeptReplies(opened, folder / OPEN_REPLIES))
            speaker = stack.enter_context(counted_replies(kept, count))
            given = GivenSolutions(speaker, [one.responses for one in groups])
            for size, numbers in sorted(by_size.items()):

                def keep(index: int, debate: Debate, numbers: Sequence[int] = numbers) -> None:
                    group = groups[numbers[index]]
                    answered, table = grades_of(environment, debate, group.responses)
                    record = Record(answered, 0, group.problem.id, table, mode=stored_mode(MODE))
                    writer.write(record)
                    done[numbers[index]] = record

                run_debates(
                    [groups[number].problem for number in numbers],
                    given,
                    ballot_protocol(judge, size),
                    seed=seed,
                    max_live=max_live,
                    agreed=agreement(environment, MODE),
                    numbers=numbers,
                    on_debate=keep,
                )
    return [done[index] for index in sorted(done)]


def stored_rollouts(path: Path) -> Path:
    """Return a folder in the user's cache with the rollouts of a file as debates without votes.

    The errors are those of ``read_rollouts``.
    """
    name = path.stem if path.stem.strip(".") else "rollouts"  # not ".."
    folder = cache_folder() / "rollouts" / checksum(path)[:32] / name
    if not folder.exists():
        groups = [
            group._replace(responses=group.responses[start : start + MOST_AGENTS])
            for group in read_rollouts(path).groups
            for start in range(0, len(group.responses), MOST_AGENTS)
        ]
        folder.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=folder.parent) as fresh:
            hold_votes(groups, None, ScriptedPolicy({}), load_environment("gsm8k"), Path(fresh), seed=0)
            try:
                (Path(fresh) / DEBATES).rename(folder)
            except OSError:
                if not folder.exists():  # else another process was faster
                    raise
    return folder


def grades_of(
    environment: Environment, debate: Debate, responses: Sequence[Response]
) -> tuple[Debate, Grades]:
    """Return a debate with the answers of its responses, and their grades (N, R), None after round 0.

    A response has the grade in its file. Without one, the gold answer decides; None without either.
    """
    problem, table, turns = debate.problem, list[tuple[Truth, ...]](), list(debate.turns)
    for index, (turn, response) in enumerate(zip(debate.turns, responses, strict=False)):
        grade, answer = response.right, answer_of(environment, problem, turn, MODE)
        if grade is None and problem.answer:
            grade = grade_turn(environment, problem, turn, MODE).verdict
        table.append((grade, *[None] * (debate.protocol.num_rounds - 1)))
        tagged = tuple(one for one in turn.parsed.failures if one.reason is not FailureReason.UNTAGGED)
        turns[index] = replace(turn, parsed=replace(turn.parsed, answer=answer, failures=tagged))
    return replace(debate, turns=tuple(turns)), tuple(table)
