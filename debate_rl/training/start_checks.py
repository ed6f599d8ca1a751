"""Checks before a run begins or resumes: what cannot be learnt from, and which settings may have changed."""

from __future__ import annotations

import re
import warnings

from debate.prompting.fitting import Cut
from debate.prompting.prompt import agent_prompt
from debate.prompting.seating import prompts_of, seat_debate
from debate.ramps import values_of
from debate.types import WITHOUT_TRUTH
from debate_rl.config import Config, TrainConfig
from debate_rl.config.models import ServerConfig
from debate_rl.config.reward_checks import keys_by_truth
from debate_rl.evaluation.grading import IN_A_BOX, gold_of
from debate_rl.evaluation.play import is_alone
from debate_rl.problems import Problems
from debate_rl.runs.provenance import ChangeRules
from envs.types import Mode
from rewards import check_scheme

LEAST_TEMPERATURE = 0.01
"""Below it sampling is greedy in all but name, and log-probabilities lose their digits."""


CHOICE_MODES: tuple[Mode, ...] = ("boxed", "lenient", "gsm8k_strict", "answer_is", "first_letter")
"""The modes that read letters of options; all others are for mathematics."""


KEEPING = ("save_every", "save_minutes", "keep_last", "keep_best", "over_memory")
ENDING = ("target", "hours", "on_alarm", "max_first_mismatch")
"""Settings of ``train`` that may always change: which checkpoints are written, whether a run that may not fit
begins, and when it ends before its last step, change nothing of the steps that it does."""


DIRECT = "eval/direct/accuracy"
HELD_BACK = "eval/sft/loss"
"""The one figure of an evaluation of which less is better."""
UNLEARNED = ("cache", "max_without", "diagnose")
"""Settings of ``verifier`` that may always change: when a run gives it up, and what only evaluations ask."""


BEST_BY = re.compile(
    r"eval/([a-z][a-z0-9_]*/)?(direct/(accuracy|self_consistency|instructions|score|(pass|cons|score)@[1-9]\d*)"
    r"|debate/(accuracy/round_\d+|winner/accuracy|majority|valid_xml|instructions|score|pass@[1-9]\d*)"
    r"|debate/(winner_minus_direct|(winner|majority)_minus_self_consistency)"
    r"|judge/(accuracy|strict_accuracy|coverage))"
)
"""The figures of an evaluation of which more is better."""


def best_by(config: Config) -> str:
    """Return the figure that decides which checkpoint is best: where nobody debates, there is no winner's."""
    name = config.train.keep_best
    alone = config.held_out.direct or is_alone(config.debate)
    if name != TrainConfig().keep_best or not (alone or config.sft.data):
        return name
    return HELD_BACK if config.sft.data and not config.held_out.limit else DIRECT


def is_better(name: str, value: float, best: float) -> bool:
    """Return whether a figure is better than the best so far: higher, and of a loss lower."""
    return value < best if name == HELD_BACK else value > best


class SchemeWarning(UserWarning):
    """A scheme some of whose streams will have no signal, or a loss that asks for other settings."""


def change_rules(config: Config) -> ChangeRules:
    """Return what may differ from the configuration a run began with.

    More steps change nothing of those done only where the learning rate does not look at the end.
    """
    schedule = config.learner.schedule
    free = (
        "run",
        "logging",
        *(f"verifier.{key}" for key in UNLEARNED),
        *(f"endpoints.{name}.{key}" for name in config.endpoints for key in ServerConfig.model_fields),
        *(f"train.{key}" for key in (*KEEPING, *ENDING)),
        *config.run.allow_changes,
    )
    if schedule == "constant":
        return ChangeRules(free, may_grow=("train.steps", "train.epochs", "sft.epochs", "sft.steps"))
    note = f"the steps done had a {schedule} learning rate towards another end than a new run's would have"
    return ChangeRules(free, notes={"train.steps": note})


def refuse_replies(config: Config) -> None:
    """Refuse to hold debates where the recipe has replies to learn from."""
    if config.sft.data:
        raise ValueError(
            f"sft.data = {list(config.sft.data)}: is a recipe of supervised training, which debate train "
            "runs; leave it out here, and begin with the weights of that run by warm_start.from_run"
        )


def refuse_greedy(config: Config) -> None:
    """Refuse to train on turns that were not drawn from the distribution of their log-probabilities."""
    debate, ramp = config.debate, config.debate.temperature
    coldest = debate if ramp is None else debate.model_copy(update={"temperature": min(values_of(ramp))})
    for persona in coldest.agent_personas:
        if config.train.steps and persona.temperature < LEAST_TEMPERATURE:
            raise ValueError(
                f"debate.personas: {persona.name} has temperature {persona.temperature:g}, and a greedy "
                f"agent explores nothing to learn from; training needs {LEAST_TEMPERATURE} or more"
            )


def refuse_likely_only(config: Config) -> None:
    """Refuse to train on turns sampled among likely tokens: the learner has the odds among all tokens."""
    debate = config.debate
    for key, value, off in (("top_p", debate.top_p, 1), ("top_k", debate.top_k, 0)):
        if config.train.steps and value != off:
            raise ValueError(
                f"debate.{key} = {value:g}: training samples among all tokens, since the likely ones alone "
                f"have log-probabilities of another distribution; set debate.{key} = {off}, and give it to "
                "debate eval and debate solve play"
            )


def refuse_open_problems(config: Config, data: Problems) -> None:
    """Refuse to wait for right and wrong solutions to problems that nobody can grade."""
    chunk = config.train.adaptive.chunk
    known = next((problem.id for problem in data.train if problem.kind in WITHOUT_TRUTH), None)
    if chunk and known is not None:
        raise ValueError(
            f"train.adaptive.chunk = {chunk}: waits for right and for wrong solutions, and the problem "
            f"{known!r} has no gold answer; set train.adaptive.chunk = 0"
        )


def refuse_unlikely(config: Config, data: Problems) -> None:
    """Refuse a likelihood reward of problems without a gold answer to be likely."""
    known = next((problem for problem in data.train if gold_of(problem) is None), None)
    if config.rewards.reads_likelihood and known is not None:
        raise ValueError(
            f"rewards.likelihood_weight: is about the gold answer, and the problem {known.id!r} of kind "
            f"{known.kind!r} has none that a reader could predict; set it to 0, or leave such problems out"
        )


def refuse_verdicts_as_truth(config: Config, data: Problems) -> None:
    """Refuse advantages that look for the right solution where a verifier model stands for truth."""
    known = next((problem.id for problem in data.train if problem.kind == "rubric"), None)
    keys = keys_by_truth(config.advantages)
    if known is not None and keys:
        raise ValueError(
            f"{keys[0]}: finds the right solution by its truth reward, and the problem {known!r} has "
            "verdicts of a verifier model in its place; choose another key"
        )


def refuse_modes(config: Config, data: Problems) -> None:
    """Refuse a mode of the grader that has no meaning for some kind of the problems."""
    grader = config.grader
    modes = {"mode": (grader.mode,), "strict_mode": (grader.strict_mode,), "beside": grader.beside}
    kinds = {problem.kind: problem.id for problem in (*data.train, *data.never_trained)}
    for key, mode in ((key, mode) for key, given in modes.items() for mode in given if mode is not None):
        for kind, id in kinds.items():
            letters = kind == "choice"
            if (mode == "first_letter" and not letters) or (letters and mode not in CHOICE_MODES):
                raise ValueError(
                    f"grader.{key} = {mode!r}: does not read the answer of {id}, which is of kind {kind!r}; "
                    f"multiple choice has {', '.join(CHOICE_MODES)}, and other kinds all but first_letter"
                )


def check_prompts(config: Config, data: Problems) -> None:
    """Warn once where the grader wants a box alone, and no prompt or example has the word."""
    family, problem = prompts_of(config.debate).alone, data.train[0]
    taught = config.warm_start.steps or problem.kind in ("open", "instructions", "code")
    if not family or taught or config.grader.mode != IN_A_BOX:
        return
    prompt = agent_prompt(seat_debate(problem, config.debate, 0), (), 0, 0, Cut())
    if not any("boxed" in message.content for message in prompt.messages):
        warnings.warn(
            f'grader.mode = "{IN_A_BOX}" reads nothing but a box, and no prompt asks for one '
            f'(debate.prompts = "{config.debate.prompts}"): choose others, or grader.mode = "lenient"',
            SchemeWarning,
            stacklevel=4,
        )


def check_streams(config: Config, data: Problems) -> None:
    """Refuse a reward scheme that cannot teach these problems; warn once of streams that will be empty."""
    _refuse_unscored(config, data)
    rewarded = {(problem.kind not in WITHOUT_TRUTH, problem.kind == "rubric") for problem in data.train}
    notes = [
        check_scheme(
            protocol,
            config.rewards,
            verifiable=verifiable,
            verdicts=verdicts,
            coins=config.train.draws_rewards,
        )
        for verifiable, verdicts in sorted(rewarded)
        for protocol in config.debate.protocols()
    ]
    if any(notes):
        warnings.warn(" ".join(note for note in dict.fromkeys(notes) if note), SchemeWarning, stacklevel=4)


def check_labels(config: Config, data: Problems) -> None:
    """Refuse labels that no problem has or that hide nothing, and what reads grades that they hide."""
    rewards = config.rewards
    known = [problem for problem in data.train if problem.kind not in WITHOUT_TRUTH]
    levels = None if rewards.label_levels is None else {*map(str, rewards.label_levels)}
    if (rewards.labels < 1 or levels is not None) and not known:
        key = f"rewards.labels = {rewards.labels:g}" if levels is None else "rewards.label_levels"
        raise ValueError(f"{key}: none of the training problems has a gold answer; leave it out")
    if levels is not None and (absent := levels - {problem.level for problem in known}):
        raise ValueError(
            f"rewards.label_levels: no training problem with a gold answer is of level {min(absent)!r}; "
            f"there are {', '.join(sorted({repr(problem.level) for problem in known}))}"
        )
    told = (known and rewards.labels) or rewards.pseudo != "none" or config.train.draws_rewards
    if (keys := keys_by_truth(config.advantages)) and not told:
        raise ValueError(
            f"{keys[0]}: finds the right solution by its truth reward, and no problem has one "
            f"(rewards.labels = {rewards.labels:g}); choose another key"
        )
    if rewards.peer_weight == "measured" and not (known and rewards.labels):
        lacks = f"rewards.labels = {rewards.labels:g}" if known else "no training problem has a gold answer"
        raise ValueError(
            f'rewards.peer_weight = "measured": {lacks}, and votes are measured on problems with labels; '
            "raise rewards.labels, or leave it out"
        )
    if rewards.labels == 1 and levels is None and rewards.pseudo != "none" and len(known) == len(data.train):
        raise ValueError(every_problem_is_labelled(rewards.pseudo))
    if (rewards.labels < 1 or levels is not None) and (
        config.sampling.by_measured or config.env.difficulty is not None
    ):
        key = f"rewards.labels = {rewards.labels:g}" if levels is None else "rewards.label_levels"
        raise ValueError(
            f"{key}: measured pass rates (env.difficulty) are grades by gold answers that it hides; leave "
            "out one of them"
        )


def every_problem_is_labelled(pseudo: str) -> str:
    """Return what is wrong with pseudo-labels for nobody, and the way out."""
    return (
        f'rewards.pseudo = "{pseudo}": every problem has its label, and none needs another; set '
        'rewards.labels below 1 (0: none has one), or rewards.pseudo = "none"'
    )


def _refuse_unscored(config: Config, data: Problems) -> None:
    """Refuse judges that are to learn from verdicts which nobody gives."""
    weight, scores = config.rewards.judge_verdict_weight, config.verifier.beside_truth
    known = next((problem.id for problem in data.train if problem.kind not in WITHOUT_TRUTH), None)
    if max(values_of(weight)) > 0 and known is not None and not scores:
        raise ValueError(
            f"rewards.judge_verdict_weight = {weight}: the verifier model does not score {known!r}, "
            "which has a gold answer; set verifier.beside_truth = true"
        )


def check_loss(config: Config) -> None:
    """Warn once of what a loss needs that the rest of the configuration does not give it."""
    if config.learner.loss != "dr_grpo":
        return
    notes = ["its gradients are about 5 times weaker than those of grpo: raise learner.lr"]
    if config.advantages.truth.scale != "none":
        scale = config.advantages.truth.scale
        notes.append(f'advantages.truth.scale = "{scale}" divides, and Dr. GRPO does not: leave it out')
    warnings.warn(f"learner.loss=dr_grpo: {'; '.join(notes)}", SchemeWarning, stacklevel=4)


def refuse_no_best(config: Config, data: Problems) -> None:
    """Refuse to keep the best by what is not a held-out figure, or by a chosen one that nothing measures."""
    name = config.train.keep_best
    if name and not BEST_BY.fullmatch(name):
        raise ValueError(
            f"train.keep_best={name!r}: is not a held-out accuracy; name one, as "
            "eval/debate/winner/accuracy, eval/debate/accuracy/round_0, eval/direct/pass@8, "
            "eval/judge/accuracy (docs/metrics.md)"
        )
    chosen = name not in ("", TrainConfig().keep_best)
    if chosen and not (data.held_out and config.held_out.every):
        raise ValueError(
            f"train.keep_best={name!r}: nothing is evaluated during training to compare by "
            f"(held_out.every={config.held_out.every}, {len(data.held_out)} held-out problems)"
        )


def refuse_unreachable(config: Config, data: Problems) -> None:
    """Refuse a target that no evaluation of the run can reach."""
    target = config.train.target
    if target is None:
        return
    named = f"train.target.metric = {target.metric!r}"
    if not BEST_BY.fullmatch(target.metric):
        raise ValueError(
            f"{named}: is not a held-out accuracy; name one, as eval/debate/accuracy/round_0 or "
            "eval/direct/accuracy (docs/metrics.md)"
        )
    if not (data.held_out and config.held_out.every):
        raise ValueError(
            f"{named}: nothing is evaluated during training (held_out.every={config.held_out.every}, "
            f"{len(data.held_out)} held-out problems)"
        )
