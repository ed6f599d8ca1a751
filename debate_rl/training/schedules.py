"""Where the schedules of a run are at a step."""

from __future__ import annotations

from debate.ramps import ramps_of
from debate_rl.config import RAMPED, Config
from learner.advantages.turns import resolved_key

WEIGHTS = (("rewards", "truth_weight"), ("advantages", "lambda_gen"), ("advantages", "lambda_judge"))
"""What is logged whether or not it changes: the weights of the streams in what is learnt."""


def baseline_lines(config: Config) -> list[str]:
    """Return a line where the temperatures of personas decide about their baselines, else none.

    >>> [line] = baseline_lines(Config.model_validate({"model": {"tiny": {}}}))
    >>> line.partition(";")[0]
    'baselines include an effect of each persona, as their temperatures differ (0.6, 0.9, 1)'
    >>> baseline_lines(Config.model_validate({"model": {"tiny": {}}, "debate": {"temperature": 1.0}}))
    []
    """
    seated = enumerate(config.debate.agent_personas)
    hot = {persona.temperature for agent, persona in seated if config.debate.learns(agent)}
    if "auto" not in config.advantages.group_keys.values() or resolved_key("auto", hot) == "round":
        return []
    shown = ", ".join(f"{temperature:g}" for temperature in sorted(hot))
    return [
        f"baselines include an effect of each persona, as their temperatures differ ({shown}); "
        'advantages.<stream>.key = "round" leaves it out'
    ]


def schedule_metrics(config: Config, step: int) -> dict[str, float]:
    """Return where the schedules of a run are at a step; nothing of those that it does not have."""
    now = config.at_step(step)
    changing = [(table, key) for table in RAMPED for key in ramps_of(getattr(config, table))]
    if config.rewards.reads_likelihood:
        changing.append(("rewards", "likelihood_weight"))
    figures = {f"schedule/{key}": getattr(getattr(now, table), key) for table, key in (*WEIGHTS, *changing)}
    if config.grader.strict_mode is not None:
        figures["grader/strict"] = float(config.grader.mode_at(step) == config.grader.final)
    if config.shots.count:
        figures["shots"] = float(config.shots.count_at(step))
    return figures
