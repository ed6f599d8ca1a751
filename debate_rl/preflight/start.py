"""Checks before a run starts or resumes: problems, settings, and settings that may have changed."""

from __future__ import annotations

import re
import warnings

from debate.prompting.fitting import Cut
from debate.prompting.prompt import agent_prompt
from debate.prompting.seating import prompts_of, seat_debate
from debate.ramps import values_of
from debate.settings import did_you_mean
from debate.types import WITHOUT_TRUTH, Problem
from debate_rl.alarms import DETECTORS
from debate_rl.config import Config, TrainConfig
from debate_rl.config.models import ServerConfig
from debate_rl.config.reward_checks import keys_by_truth
from debate_rl.engines import refuse_training
from debate_rl.evaluation.grading import IN_A_BOX
from debate_rl.runs.provenance import ChangeRules
from debate_rl.sampling.draw_problems import check_sampling, with_epochs
from debate_rl.sampling.load_problems import Problems, load_run_problems
from envs.types import Mode
from learner.losses import find_loss
from rewards import check_scheme

LEAST_TEMPERATURE = 0.01
"""Minimum temperature of training. Below, sampling is almost greedy and log-probabilities are imprecise."""
CHOICE_MODES: tuple[Mode, ...] = ("boxed", "lenient", "gsm8k_strict", "answer_is", "first_letter")
"""Modes that can read the letter of an option. All other modes are for mathematics."""
FREE = (
    *("run", "logging", "verifier.cache", "verifier.diagnose"),
    *("train.save_every", "train.keep_last", "train.keep_best", "train.over_memory"),
    *(
        "engine.base_url",
        "engine.python",
        "train.target",
        "train.hours",
        "train.on_alarm",
        "train.max_first_mismatch",
    ),
)
"""Settings that may always change, because they do not affect the steps: checkpoints, memory checks, the end
of the run, and evaluations."""
DIRECT = "eval/direct/accuracy"
HELD_BACK = "eval/sft/loss"
"""The only figure of an evaluation for which lower is better."""
BEST_BY = re.compile(
    r"eval/([a-z][a-z0-9_]*/)?(direct/(accuracy|self_consistency|instructions|score|(pass|cons|score)@[1-9]\d*)"
    r"|debate/(accuracy/round_\d+|winner/accuracy|majority|valid_xml|instructions|score|pass@[1-9]\d*)"
    r"|debate/(winner_minus_direct|(winner|majority)_minus_self_consistency)"
    r"|judge/(accuracy|strict_accuracy|coverage))"
)
"""Figures of an evaluation for which higher is better."""
FROM_DEBATES = ("logprob", "repetition", "circular", "peer_truth", "wrong_consensus")
"""Detectors that need stored debates."""
OF_VOTES = ("circular", "one_sided", "peer_truth", "votes_against_truth", "wrong_consensus")
OF_TRUTH = ("constant_truth", "peer_truth", "votes_against_truth", "wrong_consensus", "format_only")


class SchemeWarning(UserWarning):
    """A warning of reward streams without a signal, or of a loss that needs other settings."""


def checked_problems(config: Config) -> tuple[Config, Problems]:
    """Check and return the configuration, with its number of steps, and the problems."""
    if config.sft.data:
        raise ValueError(
            f"sft.data = {list(config.sft.data)}: is only for supervised training; remove it, and start from "
            f"the weights of the supervised run with warm_start.from_run"
        )
    refuse_training(config)
    refuse_unexplored(config)
    find_loss(config.learner.loss)  # raises for an unknown loss before the warm start
    data = load_run_problems(config)
    config = with_epochs(config, len(data.train))
    refuse_without_truth(config, data)
    refuse_modes(config, data)
    check_labels(config, data)
    check_streams(config, data)
    check_prompts(config, data)
    check_loss(config)
    check_sampling(config, data)
    best, target = config.train.keep_best, config.train.target
    if best not in ("", TrainConfig().keep_best):
        refuse_unmeasured(f"train.keep_best={best!r}", best, config, data)
    if target is not None:
        refuse_unmeasured(f"train.target.metric = {target.metric!r}", f"eval/{target.figure}", config, data)
    refuse_blind_alarms(config, data)
    return config, data


def best_by(config: Config) -> str:
    """Return the figure that selects the best checkpoint, which is not the winner's without debates."""
    name = config.train.keep_best
    alone = config.held_out.direct or config.debate.num_agents == config.debate.num_rounds == 1
    if name != TrainConfig().keep_best or not (alone or config.sft.data):
        return name
    return HELD_BACK if config.sft.data and not config.held_out.limit else DIRECT


def is_better(name: str, value: float, best: float) -> bool:
    """Return True if a figure is better than the best so far: higher, or lower for a loss."""
    return value < best if name == HELD_BACK else value > best


def change_rules(config: Config) -> ChangeRules:
    """Return the rules for settings that may change when a run resumes.

    The number of steps may grow only if the learning rate does not depend on it.
    """
    schedule = config.learner.schedule
    endpoints = (f"endpoints.{name}.{key}" for name in config.endpoints for key in ServerConfig.model_fields)
    free = (*FREE, *endpoints, *config.run.allow_changes)
    if schedule == "constant":
        return ChangeRules(free, may_grow=("train.steps", "train.epochs", "sft.epochs", "sft.steps"))
    note = f"the finished steps followed a {schedule} learning rate that ends at another step"
    return ChangeRules(free, notes={"train.steps": note})


def refuse_unexplored(config: Config) -> None:
    """Raise ValueError if turns to train on are almost greedy or restricted to likely tokens.

    Such turns are not samples of the distribution that their log-probabilities describe.
    """
    debate, ramp = config.debate, config.debate.temperature
    if not config.train.steps:
        return
    coldest = debate if ramp is None else debate.model_copy(update={"temperature": min(values_of(ramp))})
    for persona in coldest.agent_personas:
        if persona.temperature < LEAST_TEMPERATURE:
            raise ValueError(
                f"debate.personas: {persona.name} has temperature {persona.temperature:g}, so replies are "
                f"almost greedy; training needs at least {LEAST_TEMPERATURE}"
            )
    for key, value, off in (("top_p", debate.top_p, 1), ("top_k", debate.top_k, 0)):
        if value != off:
            raise ValueError(
                f"debate.{key} = {value:g}: training must sample from all tokens, because a restricted "
                f"distribution has other log-probabilities; set debate.{key} = {off}, and restrict only "
                f"debate eval and debate solve play"
            )


def refuse_without_truth(config: Config, data: Problems) -> None:
    """Raise ValueError for settings that need truth if a problem has none."""
    open_ = next((problem.id for problem in data.train if problem.kind in WITHOUT_TRUTH), None)
    if config.train.adaptive and open_ is not None:
        raise ValueError(
            f"train.adaptive: waits for right and wrong solutions, but the problem {open_!r} has no gold "
            "answer; remove train.adaptive"
        )
    scored, keys = (
        next((p.id for p in data.train if p.kind == "rubric"), None),
        keys_by_truth(config.advantages),
    )
    if scored is not None and keys:
        raise ValueError(
            f"{keys[0]}: needs a ground-truth reward to find right solutions, but the problem {scored!r} is "
            f"only scored by a verifier model; choose another key"
        )
    if not config.rewards.reads_likelihood:
        return
    from debate_rl.evaluation.grading import gold_of

    unlikely = next((problem for problem in data.train if gold_of(problem) is None), None)
    if unlikely is not None:
        raise ValueError(
            f"rewards.likelihood_weight: needs a gold answer that a reader can predict, but the problem "
            f"{unlikely.id!r} of kind {unlikely.kind!r} has none; set it to 0, or drop such problems"
        )


def refuse_modes(config: Config, data: Problems) -> None:
    """Raise ValueError for a grading mode that cannot read the answers of some problems."""
    grader = config.grader
    modes = {"mode": [mode for _, mode in grader.modes], "beside": grader.beside}
    kinds = {problem.kind: problem.id for problem in (*data.train, *data.never_trained)}
    for key, mode in ((key, mode) for key, given in modes.items() for mode in given):
        for kind, id in kinds.items():
            letters = kind == "choice"
            if (mode == "first_letter" and not letters) or (letters and mode not in CHOICE_MODES):
                raise ValueError(
                    f"grader.{key} = {mode!r}: cannot read the answer of {id}, which is of kind {kind!r}; "
                    f"multiple choice allows {', '.join(CHOICE_MODES)}, and other kinds all but first_letter"
                )


def check_prompts(config: Config, data: Problems) -> None:
    """Warn if the grader reads only boxed answers, and no prompt or example mentions a box."""
    family, problem = prompts_of(config.debate).alone, data.train[0]
    taught = config.warm_start.steps or problem.kind in ("open", "instructions", "code")
    if not family or taught or config.grader.mode_at(0) != IN_A_BOX:
        return
    prompt = agent_prompt(seat_debate(problem, config.debate, 0), (), 0, 0, Cut())
    if not any("boxed" in message.content for message in prompt.messages):
        _warn(
            f'grader.mode = "{IN_A_BOX}" reads only boxed answers, but no prompt asks for a box '
            f'(debate.prompts = "{config.debate.prompts}"): choose other prompts, or grader.mode = "lenient"'
        )


def check_streams(config: Config, data: Problems) -> None:
    """Raise ValueError for rewards without any signal on the problems. Warn of streams without a signal."""
    weight, scores = config.rewards.judge_verdict_weight, config.verifier.beside_truth
    known = next((problem.id for problem in data.train if problem.kind not in WITHOUT_TRUTH), None)
    if max(values_of(weight)) > 0 and known is not None and not scores:
        raise ValueError(
            f"rewards.judge_verdict_weight = {weight}: the verifier model does not score problems with a "
            f"gold answer, such as {known!r}; set verifier.beside_truth = true"
        )
    rewarded = {(problem.kind not in WITHOUT_TRUTH, problem.kind == "rubric") for problem in data.train}
    coins = config.train.draws_rewards
    notes = [
        check_scheme(protocol, config.rewards, verifiable=verifiable, verdicts=verdicts, coins=coins)
        for verifiable, verdicts in sorted(rewarded)
        for protocol in config.debate.protocols()
    ]
    if any(notes):
        _warn(" ".join(note for note in dict.fromkeys(notes) if note))


def check_labels(config: Config, data: Problems) -> None:
    """Raise ValueError for labels without effect, and for settings that depend on hidden grades."""
    rewards = config.rewards
    known = [problem for problem in data.train if problem.kind not in WITHOUT_TRUTH]
    levels = None if rewards.label_levels is None else {*map(str, rewards.label_levels)}
    hides = rewards.hides_labels
    key = f"rewards.labels = {rewards.labels:g}" if levels is None else "rewards.label_levels"
    if hides and not known:
        raise ValueError(f"{key}: no training problem has a gold answer; remove the setting")
    if levels is not None and (absent := levels - {problem.level for problem in known}):
        raise ValueError(
            f"rewards.label_levels: no training problem with a gold answer has level {min(absent)!r}; the "
            f"levels are {', '.join(sorted({repr(problem.level) for problem in known}))}"
        )
    told = (known and rewards.labels) or rewards.pseudo != "none" or config.train.draws_rewards
    if (keys := keys_by_truth(config.advantages)) and not told:
        raise ValueError(
            f"{keys[0]}: needs a ground-truth reward to find right solutions, but no problem has one "
            f"(rewards.labels = {rewards.labels:g}); choose another key"
        )
    if rewards.peer_weight == "measured" and not (known and rewards.labels):
        lacks = f"rewards.labels = {rewards.labels:g}" if known else "no training problem has a gold answer"
        raise ValueError(
            f'rewards.peer_weight = "measured": {lacks}, but votes are measured on problems with labels; '
            "raise rewards.labels, or remove rewards.peer_weight"
        )
    if not hides and rewards.pseudo != "none" and len(known) == len(data.train):
        raise ValueError(every_problem_is_labelled(rewards.pseudo))
    if hides and config.env.difficulty is not None:
        raise ValueError(
            f"{key}: hides gold answers, but measured pass rates (env.difficulty) reveal them; remove "
            f"one of the two settings"
        )


def every_problem_is_labelled(pseudo: str) -> str:
    """Return the error message for pseudo-labels if all problems have labels."""
    return (
        f'rewards.pseudo = "{pseudo}": every problem has a label, so none needs a pseudo-label; set '
        'rewards.labels below 1 (0: no labels), or rewards.pseudo = "none"'
    )


def check_loss(config: Config) -> None:
    """Warn if a loss needs settings that the configuration lacks."""
    if config.learner.loss != "dr_grpo":
        return
    notes = ["its gradients are about 5 times smaller than those of grpo; raise learner.lr"]
    if (scale := config.advantages.truth.scale) != "none":
        notes.append(
            f'advantages.truth.scale = "{scale}" divides the advantages, which Dr. GRPO does not; remove it'
        )
    _warn(f"learner.loss=dr_grpo: {'; '.join(notes)}")


def refuse_unmeasured(named: str, figure: str, config: Config, data: Problems) -> None:
    """Raise ValueError if a figure, set by the key ``named``, is no held-out accuracy or is not measured."""
    if not BEST_BY.fullmatch(figure):
        raise ValueError(
            f"{named}: must be a held-out accuracy, such as eval/debate/winner/accuracy, "
            "eval/debate/accuracy/round_0, eval/direct/pass@8, eval/judge/accuracy (docs/metrics.md)"
        )
    if not (data.held_out and config.held_out.every):
        raise ValueError(
            f"{named}: no evaluation during training measures it (held_out.every={config.held_out.every}, "
            f"{len(data.held_out)} held-out problems); set held_out.every and add held-out problems"
        )


def refuse_blind_alarms(config: Config, data: Problems) -> None:
    """Raise ValueError for an action of a detector that is unknown or has no data."""
    given = config.train.on_alarm
    if not isinstance(given, dict):
        return
    blind = blind_detectors(config, data.train, data.never_trained)
    for name, action in given.items():
        if name not in DETECTORS:
            hint = did_you_mean(name, DETECTORS, f"detectors: {', '.join(DETECTORS)}")
            raise ValueError(f"train.on_alarm.{name}: unknown detector; {hint}")
        if name in blind:
            raise ValueError(f"train.on_alarm.{name} = {action!r}: the detector has no data: {blind[name]}")


def blind_detectors(
    config: Config, trained: tuple[Problem, ...], held_out: tuple[Problem, ...]
) -> dict[str, str]:
    """Return the detectors that can never raise an alarm in this run, with the reasons."""
    logging, evaluated = config.logging, config.held_out.every and held_out
    tokens, pairs = logging.transcript_tokens, config.held_out.judge_pairs
    open_ = all(problem.kind in WITHOUT_TRUTH for problem in trained)
    kl, likelihood = config.learner.needs_reference, config.rewards.reads_likelihood
    rows = (
        (not kl, ("kl",), "no reference, so no KL is measured (learner.beta = 0)"),
        (
            logging.transcript_groups == 0,
            FROM_DEBATES,
            "debates are not stored (logging.transcript_groups = 0)",
        ),
        (not tokens, ("logprob",), "log-probabilities are not stored (logging.transcript_tokens = false)"),
        (config.debate.num_agents == 1, OF_VOTES, "one agent has no votes (debate.num_agents = 1)"),
        (open_, OF_TRUTH, "the problems have no gold answers"),
        (not evaluated, ("held_out",), "there are no evaluations during training (held_out.every)"),
        (not likelihood, ("likelihood",), "no likelihood is rewarded (rewards.likelihood_weight = 0)"),
        (not config.grader.beside, ("grader_drift",), "no second grader is set (grader.beside)"),
        (not pairs, ("hack_gap",), "there are no fixed judge pairs (held_out.judge_pairs = 0)"),
    )
    return {name: why for lacks, names, why in rows if lacks for name in names}


def _warn(note: str) -> None:
    warnings.warn(note, SchemeWarning, stacklevel=5)


def baseline_lines(config: Config) -> list[str]:
    """Return a line if the temperatures of personas affect their baselines, else nothing.

    >>> [line] = baseline_lines(Config.model_validate({"model": {"tiny": {}}}))
    >>> line.partition(";")[0]
    'baselines differ by persona, because temperatures differ (0.6, 0.9, 1)'
    >>> baseline_lines(Config.model_validate({"model": {"tiny": {}}, "debate": {"temperature": 1.0}}))
    []
    """
    from learner.advantages.turns import resolved_key

    seated = enumerate(config.debate.agent_personas)
    hot = {persona.temperature for agent, persona in seated if config.debate.learns(agent)}
    if "auto" not in config.advantages.group_keys.values() or resolved_key("auto", hot) == "round":
        return []
    shown = ", ".join(f"{temperature:g}" for temperature in sorted(hot))
    return [
        f"baselines differ by persona, because temperatures differ ({shown}); "
        'advantages.<stream>.key = "round" uses one baseline for all personas'
    ]
