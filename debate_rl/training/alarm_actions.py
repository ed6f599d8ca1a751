"""What ``train.on_alarm`` asks for each detector, and which detectors have nothing to look at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from debate.settings import did_you_mean
from debate.types import WITHOUT_TRUTH
from debate_rl.alarms import DETECTORS
from debate_rl.config import Config
from debate_rl.config.ends import Action
from debate_rl.problems import Problems

FROM_DEBATES = ("logprob", "repetition", "circular", "peer_truth", "wrong_consensus")
"""Detectors that read nothing but stored debates."""
OF_VOTES = ("circular", "one_sided", "peer_truth", "votes_against_truth", "wrong_consensus")
OF_TRUTH = (
    *("constant_truth", "peer_truth", "votes_against_truth", "wrong_consensus", "held_out", "format_only"),
)


def alarm_actions(config: Config) -> Mapping[str, Action]:
    """Return what an alarm of each detector does, by its name."""
    given = config.train.on_alarm
    table: dict[str, Action] = given if isinstance(given, dict) else dict.fromkeys(DETECTORS, given)
    quiet: Action = "warn"
    return {name: table.get(name, quiet) for name in DETECTORS}


def refuse_blind_alarms(config: Config, data: Problems) -> None:
    """Refuse an action for a detector that there is not, or that nothing is logged for."""
    given = config.train.on_alarm
    if not isinstance(given, dict):
        return
    for name in given:
        if name not in DETECTORS:
            hint = did_you_mean(name, DETECTORS, f"detectors: {', '.join(DETECTORS)}")
            raise ValueError(f"train.on_alarm.{name}: no detector is named so; {hint}")
    blind = dict(blind_detectors(config, data))
    for name, action in given.items():
        if name in blind:
            raise ValueError(
                f"train.on_alarm.{name} = {action!r}: the detector has nothing to look at: {blind[name]}"
            )


def blind_detectors(config: Config, data: Problems) -> Iterator[tuple[str, str]]:
    """Yield the name of each detector that can never fire in this run, with what is not logged."""
    logging = config.logging
    if not config.learner.needs_reference:
        yield "kl", "no reference, so no KL is measured (learner.beta = 0)"
    if logging.transcript_groups == 0:
        yield from (
            (name, "it reads stored debates (logging.transcript_groups = 0)") for name in FROM_DEBATES
        )
    if not logging.transcript_tokens:
        yield "logprob", "log-probabilities are not stored (logging.transcript_tokens = false)"
    if config.debate.num_agents == 1:
        yield from ((name, "one agent has no votes (debate.num_agents = 1)") for name in OF_VOTES)
    if all(problem.kind in WITHOUT_TRUTH for problem in data.train):
        yield from ((name, "the problems have no gold answers") for name in OF_TRUTH if name != "held_out")
    if not (config.held_out.every and data.never_trained):
        yield "held_out", "nothing is evaluated during training (held_out.every, held_out.limit)"
    if not config.rewards.reads_likelihood:
        yield "likelihood", "no likelihood is rewarded (rewards.likelihood_weight = 0)"
    if not config.grader.beside:
        yield "grader_drift", "no second grader is set (grader.beside)"
    if not config.held_out.judge_pairs:
        yield "hack_gap", "the judge is compared on no fixed pairs (held_out.judge_pairs = 0)"
