"""Names of metrics in W&B and TensorBoard: train/, eval/ and perf/, and TRL's names for what TRL logs."""

from __future__ import annotations

from collections.abc import Mapping

PERF = ("seconds/", "idle/", "memory/", "tokens_per_second")
"""Prefixes of metrics about the speed and resource use of a run."""
AS_IN_TRL = {
    "lr": "learning_rate",
    "kl_mean": "kl",
    "entropy_mean": "entropy",
    "clip_fraction": "clip_ratio/region_mean",
    "tokens/completion": "completions/mean_length",
    "tokens/completion_max": "completions/max_length",
    "truncated": "completions/clipped_ratio",
}
"""Metrics that TRL's GRPOTrainer logs under another name, so that both can share a chart."""
BOUNDS = ("/low", "/high")
"""Suffixes of interval bounds, which are not charted: each would be a chart of its own."""


def chart_name(name: str) -> str:
    """Return the name of a metric in charts, which begins with its group: train, eval or perf.

    >>> [chart_name(name) for name in ("lr", "judge/accuracy", "eval/direct/accuracy", "seconds/learn")]
    ['train/learning_rate', 'train/judge/accuracy', 'eval/direct/accuracy', 'perf/seconds/learn']
    """
    if name.startswith("eval/"):
        return name
    return f"perf/{name}" if name.startswith(PERF) else f"train/{AS_IN_TRL.get(name, name)}"


def charted(metrics: Mapping[str, float]) -> dict[str, float]:
    """Return the metrics to chart under the names of charts.

    >>> charted({"kl_mean": 0.5, "eval/direct/accuracy": 0.25, "eval/direct/accuracy/low": 0.1})
    {'train/kl': 0.5, 'eval/direct/accuracy': 0.25}
    """
    return {chart_name(name): value for name, value in metrics.items() if not name.endswith(BOUNDS)}
