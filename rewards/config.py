"""The reward scheme: how votes become scores, how streams are weighted, and whether a run can learn."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator

from debate.config import DebateConfig
from debate.ramps import Penalty, Share, Weight, number, settings_at, values_of
from debate.settings import Settings
from rewards.peer import peer_rule
from rewards.pseudo import Pseudo


class Overlong(BaseModel):
    """The penalty of a reply near its token limit.

    It is not a ``Settings`` because it is the value of one key.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    tokens: int = Field(default=256, ge=1)
    """Number of tokens before the limit over which the penalty grows from 0 to its full size."""
    penalty: float = Field(default=-0.5, le=0)
    """Shaping reward of a solution at its token limit."""


class RewardConfig(Settings):
    """The reward scheme. Whatever is set here, a turn without signal has the reward None, not a number."""

    renamed = {  # noqa: RUF012
        "verdict_credit": "truth_credit",
        "overlong_tokens": "overlong = {tokens = 256}",
        "overlong_penalty": "overlong = {penalty = -0.5}",
    }
    same = {"judge_own": DebateConfig}  # noqa: RUF012

    peer: str = "margin"
    """Peer rule: "margin", "copeland", "bradley_terry", "win_rate", "net_wins", or your own as
    "module:function" (rewards.peer)."""
    bradley_terry_alpha: float = Field(default=0.1, ge=1e-3)
    """Regularisation of Bradley-Terry scores. Without it the winner of every vote scores infinity."""
    truth_weight: Share = 0.5
    """Weight of ground truth in the generator's credit. Peer votes have the rest."""
    peer_weight: Literal["rest", "routed", "measured"] = "rest"
    """Weight of peer votes. "rest": 1 - ``truth_weight``. "routed": truth alone in a round whose grades
    differ, votes alone in a round whose grades are equal or unknown; ``truth_weight`` is not used.
    "measured": 1 - ``truth_weight``, times the measured advantage of votes over a coin on the labelled
    problems of recent steps (rewards.measured)."""
    labels: float = Field(default=1.0, ge=0, le=1)
    """Fraction of problems whose gold answers are used for rewards, drawn by the run's seed and the problem's
    id. Grades of other problems are logged only (docs/rewards.md)."""
    label_levels: tuple[str | int, ...] | None = Field(default=None, min_length=1)
    """Levels whose problems may have labels, such as [1, 2]: truth on easy problems, none on hard ones. None:
    all levels."""
    pseudo: Pseudo = "none"
    """Rule for the pseudo-labels of problems without a label: "none", "majority" (the most frequent answer of
    a round), "last_majority" (of the last round), "voted" (most wins minus losses), "verified" (a majority
    that a verifier model passes) or "anchored" (highest Bradley-Terry strength). See rewards.pseudo."""
    judge_pseudo: bool = False
    """Also reward judges by the pseudo-labels of ``rewards.pseudo``. false: on problems without a label,
    judges are rewarded only by the other judges."""
    truth_correct: float = 1.0
    """Truth reward of a right answer."""
    truth_wrong: float = 0.0
    """Truth reward of a wrong answer."""
    truth_missing: float = 0.0
    """Truth reward of a turn without a readable answer."""
    truth_credit: Literal["auto", "whole", "partial"] = "auto"
    """For graded scores (instructions followed, F1, verdicts). "whole": reward pass or fail. "partial":
    reward the score, scaled from ``truth_wrong`` to ``truth_correct``. "auto": "partial" for problems of kind
    "rubric", scored by a verifier model, and "whole" for others."""
    form: Literal["boxed", "answer_is", "hashes"] = "boxed"
    """The answer format that ``rewards.form_bonus`` rewards. "boxed": a box. "answer_is": a sentence with
    "the answer is". "hashes": a line that begins with ####."""
    form_bonus: Weight = 0.0
    """Added to the truth reward of every graded solution, right or wrong, that gives its answer in the format
    ``rewards.form``."""
    truth_rounds: Literal["all", "last"] = "all"
    """Rounds whose solutions truth rewards: all, or only the last."""
    judge_truth_weight: Share | None = None
    """Weight of truth in the judge reward; the consensus of the other judges has the rest. None is 1 on
    problems with ground truth and 0 on others."""
    judge_ties: Literal["zero", "reward"] = "zero"
    """How a tie is rewarded if truth or the other judges call the pair equal. "zero": votes on such a
    pair have no value. "reward": a tie earns 1 and a decision 0. On all other pairs a tie earns 0."""
    judge_verdict_weight: Share = 0.0
    """Weight of a verifier model's preference in the judge reward; truth and consensus have the rest. A
    schedule that ends at 0 lets judges learn from a stronger model at first (docs/rewards.md)."""
    swap_weight: Weight = 0.0
    """Weight of consistency in the judge reward of a final ballot. Consistency, in [-1, 1], is the agreement
    with the same judge's second ballot, which shows the solutions in reverse order. Needs
    ``debate.ask_swapped`` (rewards.judge_rewards)."""
    judge_own: bool = False
    """Count votes on the judge's own work. Should equal ``debate.judge_own``, which requests them."""
    novelty_bonus: Weight = 0.0
    """Added to the shaping reward of a solution whose answer no other agent gave so far, right or wrong."""
    copy_penalty: Penalty = 0.0
    """Added to the shaping reward of a solution that copies another: at least 80% of its sequences of four
    words occur in a solution that its author read. Zero or less."""
    length_penalty: Penalty = 0.0
    """Added to the shaping reward of a solution in proportion to its length: the full value at the token
    limit. Zero or less."""
    likelihood_weight: Weight = 0.0
    """Weight of the likelihood stream: the log-probability of the gold answer given the reasoning alone,
    under the frozen reference (``Likelihoods``)."""
    self_correction: Weight = 0.0
    """Added to the shaping reward of a revision that peers score higher than the solution it revises.
    Only for ``debate.protocol = "critique"``."""
    critic: Literal["persuasion", "help"] = "persuasion"
    """What a critic is rewarded for. "persuasion": peers score the revision of the criticised solution lower
    than the solution. "help": they score it higher. Only for
    ``debate.protocol = "critique"``."""
    persuasion_beta: Weight = 5.0
    """Factor of a critic's reward: the reward is this times the fall of the criticised solution's score, or
    its rise with ``critic = "help"``. Scores are in [0, 1]. Only for
    ``debate.protocol = "critique"``."""
    persuasion_targets: Literal["all", "wrong"] = "all"
    """Reward criticism of every solution, or only of wrong ones. Only for
    ``debate.protocol = "critique"``."""
    format_penalty: float = -0.5
    """Format reward of a turn that lacks a required comparison. Zero or less. The advantage of this
    reward goes to the judge's tokens, or to the last token of a reply without such tokens."""
    overlong: Literal["keep", "mask"] | Overlong = "keep"
    """How replies that end at their token limit are treated. "keep": like all others. "mask": do not train on
    them; their rewards still count in baselines. {tokens = 256, penalty = -0.5}: the shaping reward of a
    solution falls from 0 to the penalty over the last tokens before the limit (DAPO)."""
    mix: Literal["advantages", "rewards"] = "advantages"
    """When peer and truth are combined. "advantages": after each is centred with its own baseline. "rewards":
    before centring, as one reward with one baseline."""

    @field_validator("overlong", mode="before")
    @classmethod
    def _penalty_is_a_table(cls, value: object) -> object:
        if isinstance(value, str) and value not in ("keep", "mask"):
            raise ValueError('must be "keep", "mask" or a table such as {tokens = 256, penalty = -0.5}')
        return value

    @field_validator("peer")
    @classmethod
    def _known_rule(cls, value: str) -> str:
        peer_rule(value)
        return value

    @field_validator("format_penalty")
    @classmethod
    def _not_a_bonus(cls, value: float) -> float:
        if value > 0:
            raise ValueError(f"must be 0 or less, because it is a penalty; got {value}")
        return value

    def at_step(self, step: int) -> Self:
        """Return the reward scheme at a step, with a number instead of every ramp.

        >>> scheme = RewardConfig(form_bonus=[[0, 0.1], [4, 0.0]])
        >>> [scheme.at_step(step).form_bonus for step in (0, 1, 4, 9)]
        [0.1, 0.07500000000000001, 0.0, 0.0]
        """
        return settings_at(self, step)

    @property
    def knows_truth(self) -> bool:
        """Whether problems with a gold answer have any source for their truth stream."""
        return self.labels > 0 or self.pseudo != "none"

    @property
    def hides_labels(self) -> bool:
        """Whether the scheme hides the gold answers of some problems."""
        return self.labels < 1 or self.label_levels is not None

    @property
    def hides_any_label(self) -> bool:
        """Whether the scheme may use anything other than the gold answers of all problems."""
        return self.hides_labels or self.pseudo != "none"

    @property
    def stream_weights(self) -> tuple[float, float]:
        """The weights of peer and truth in the generator's credit, at a step. Both are 1 if votes are routed.

        If the weight of votes is measured, this is its maximum; see ``rewards.measured.stream_weights``.

        >>> RewardConfig(truth_weight=0.25).stream_weights, RewardConfig(peer_weight="routed").stream_weights
        ((0.75, 0.25), (1.0, 1.0))
        """
        weight = number(self.truth_weight)
        return (1.0, 1.0) if self.peer_weight == "routed" else (1 - weight, weight)

    @property
    def shapes(self) -> bool:
        """Whether any step has a shaping reward."""
        overlong = isinstance(self.overlong, Overlong) and self.overlong.penalty
        parts = (self.novelty_bonus, self.copy_penalty, self.length_penalty, self.self_correction, overlong)
        return any(parts)

    @property
    def reads_likelihood(self) -> bool:
        """Whether any step has a likelihood reward."""
        return max(values_of(self.likelihood_weight)) > 0

    @property
    def tells_right(self) -> bool:
        """Whether a solution is right if and only if its truth reward is ``truth_correct``.

        >>> [RewardConfig(**own).tells_right for own in ({}, {"form_bonus": 0.1}, {"truth_wrong": 1.0})]
        [True, False, False]
        """
        shared = self.truth_correct in (self.truth_wrong, self.truth_missing)
        partly = self.truth_credit == "partial" or self.truth_rounds == "last"
        return not (shared or self.form_bonus or partly)

    def judge_weight_of_truth(self, *, verifiable: bool) -> float:
        """Return the weight of truth in the judge stream, for a problem with or without an answer.

        >>> RewardConfig().judge_weight_of_truth(verifiable=True)
        1.0
        >>> RewardConfig().judge_weight_of_truth(verifiable=False)
        0.0
        """
        if self.judge_truth_weight is None:
            return 1.0 if verifiable else 0.0
        return number(self.judge_truth_weight)


def check_scheme(
    debate: DebateConfig,
    rewards: RewardConfig,
    *,
    verifiable: bool,
    verdicts: bool = False,
    coins: bool = False,
) -> str | None:
    """Return None, or a warning about streams without signal.

    ValueError for a scheme that cannot teach anything.

    ``verifiable``: whether the problems have answers. ``verdicts``: whether a verifier model grades; its
    verdicts reward the generator, and judges only with ``judge_verdict_weight``. ``coins``: whether coins
    replace truth.

    >>> check_scheme(DebateConfig(num_agents=3), RewardConfig(), verifiable=True)
    >>> print(check_scheme(DebateConfig(num_agents=4), RewardConfig(), verifiable=False))
    None
    >>> (check_scheme(DebateConfig(num_agents=3), RewardConfig(), verifiable=False) or "").split(":")[0]
    'The judge stream is off'
    """
    if rewards.judge_pseudo and rewards.pseudo == "none":
        raise ValueError(
            'rewards.judge_pseudo = true: there are no pseudo-labels (rewards.pseudo = "none"); set a rule '
            "there, or leave out judge_pseudo"
        )
    _refuse_ballots_of_nothing(debate, rewards)
    _refuse_idle_generator(debate, rewards, (verifiable and rewards.knows_truth) or verdicts or coins)
    _refuse_penalty_for_all(debate, rewards)
    judged_by_grades = verifiable and (rewards.labels > 0 or rewards.judge_pseudo)
    warnings = (
        _votes_warning(debate, rewards),
        _own_work_warning(debate, rewards),
        _criticism_warning(debate, rewards, verifiable and rewards.knows_truth),
        _judge_warning(debate, rewards, judged_by_grades, verdicts),
    )
    return " ".join(warning for warning in warnings if warning) or None


def _refuse_ballots_of_nothing(debate: DebateConfig, rewards: RewardConfig) -> None:
    if debate.ballot == "swiss" and not debate.final_ballot:
        raise ValueError(
            'debate.ballot = "swiss" pairs the solutions of the final ballot, but there is none; set '
            "debate.final_ballot = true, or leave out debate.ballot"
        )
    if debate.ask_swapped and not debate.final_ballot:
        raise ValueError(
            "debate.ask_swapped = true asks for the final ballot again, but there is none; set "
            "debate.final_ballot = true, or leave out debate.ask_swapped"
        )
    if max(values_of(rewards.swap_weight)) > 0 and not debate.ask_swapped:
        raise ValueError(
            f"rewards.swap_weight = {rewards.swap_weight}: no judge is asked twice; set debate.ask_swapped = "
            "true, or leave out swap_weight"
        )


def judges_per_pair(debate: DebateConfig, rewards: RewardConfig) -> int:
    """Return how many agents may cast a counted vote on one pair; 0 if no prompt shows a pair.

    With Swiss pairing it is one, although the leading pair may have a second judge.

    >>> [judges_per_pair(DebateConfig(num_agents=n), RewardConfig()) for n in (1, 2, 3, 4)]
    [0, 0, 1, 2]
    """
    held = debate.history_rounds != 0 and (debate.num_rounds > 1 or debate.final_ballot)
    if not held:
        return 0
    if debate.judge_own and rewards.judge_own:
        return debate.num_agents if debate.num_agents >= 2 else 0
    if debate.ballot == "swiss" and debate.num_rounds == 1:
        return 1
    return max(0, debate.num_agents - 2)


def _refuse_idle_generator(debate: DebateConfig, rewards: RewardConfig, verifiable: bool) -> None:
    votes = judges_per_pair(debate, rewards) > 0
    weights = (0.5,) if rewards.peer_weight == "routed" else values_of(rewards.truth_weight)
    if (votes and min(weights) < 1) or (verifiable and (max(weights) > 0 or rewards.reads_likelihood)):
        return
    if votes:
        raise ValueError(
            "rewards.truth_weight = 1 leaves the generator without reward on problems that have no answers: "
            "lower truth_weight, so that peer votes count"
        )
    truth = "rewards.truth_weight is 0" if verifiable else "the problems have no answers"
    raise ValueError(f"nothing to learn from: {truth}, and {_why_no_votes(debate)}; {_WAYS_TO_VOTES}")


_WAYS_TO_VOTES = (
    "use debate.num_agents of 3 or more (2 with judge_own in debate and rewards), debate.history_rounds "
    "other than 0, and debate.num_rounds of 2 or more or debate.final_ballot"
)


def _why_no_votes(debate: DebateConfig) -> str:
    shape = f"num_agents = {debate.num_agents}, num_rounds = {debate.num_rounds}"
    shape += f", final_ballot = {debate.final_ballot}, history_rounds = {debate.history_rounds}"
    return f"no agent is shown a pair that it may compare (debate: {shape})"


def _refuse_penalty_for_all(debate: DebateConfig, rewards: RewardConfig) -> None:
    limit = debate.max_tokens + debate.thinking_tokens
    if isinstance(rewards.overlong, Overlong) and rewards.overlong.tokens >= limit:
        raise ValueError(
            f"rewards.overlong = {{tokens = {rewards.overlong.tokens}}} penalizes every reply: a reply has "
            f"at most {limit} tokens (debate.max_tokens, debate.thinking_tokens); set fewer tokens"
        )


def _votes_warning(debate: DebateConfig, rewards: RewardConfig) -> str | None:
    if debate.num_agents == 1 or judges_per_pair(debate, rewards):
        return None
    return f"Only truth trains: {_why_no_votes(debate)}, so the peer and judge streams are empty."


def _own_work_warning(debate: DebateConfig, rewards: RewardConfig) -> str | None:
    if debate.judge_own == rewards.judge_own:
        return None
    if debate.judge_own:
        return (
            "Votes on own work are requested (debate.judge_own) but not counted (rewards.judge_own = false)."
        )
    return "rewards.judge_own has no effect: no agent judges its own work (debate.judge_own = false)."


def _criticism_warning(debate: DebateConfig, rewards: RewardConfig, verifiable: bool) -> str | None:
    if debate.protocol != "critique":
        idle = {"self_correction": rewards.self_correction, "critic": rewards.critic != "persuasion"}
        key = next((key for key, given in idle.items() if given), None)
        return key and f'rewards.{key} has no effect: it is for debate.protocol = "critique".'
    if judges_per_pair(debate, rewards) < 2:
        return (
            f"Critics earn little: with num_agents = {debate.num_agents} a solution has at most one judge "
            "in addition to its critic; use 4 or more."
        )
    if rewards.persuasion_targets == "wrong" and not verifiable:
        return 'Critics earn nothing: rewards.persuasion_targets = "wrong" needs problems with answers.'
    return None


def _judge_warning(
    debate: DebateConfig, rewards: RewardConfig, verifiable: bool, verdicts: bool
) -> str | None:
    """Return a warning if the judge stream is off by default.

    ValueError if it was requested but cannot work.
    """
    given, judges = rewards.judge_truth_weight, judges_per_pair(debate, rewards)
    weights = (float(verifiable),) if given is None else values_of(given)
    otherwise = verdicts and max(values_of(rewards.judge_verdict_weight)) > 0
    otherwise |= max(values_of(rewards.swap_weight)) > 0
    if judges == 0 or otherwise or (verifiable and max(weights) > 0) or (min(weights) < 1 and judges > 1):
        return None
    if given is not None:
        weight = min(weights)
        raise ValueError(f"rewards.judge_truth_weight = {weight}: {_why_no_judge_stream(debate, weight)}")
    return (
        f"The judge stream is off: without labels a vote is rewarded by the other judges of its pair, and "
        f"with num_agents = {debate.num_agents} there are none. Peer rewards still train."
    )


def _why_no_judge_stream(debate: DebateConfig, weight: float) -> str:
    if weight == 1:
        unset = "leave it out, or set it below 1 with 4 agents or more"
        return f"the problems have no answers to reward a judge by; {unset}"
    return (
        f"the judge stream would be consensus alone, and with num_agents = {debate.num_agents} no pair has "
        "two judges; use debate.num_agents of 4 or more, judge_own = true in debate and rewards, "
        "or, for problems with answers, a judge_truth_weight above 0"
    )
