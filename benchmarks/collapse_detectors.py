"""How often the collapse detectors cry wolf, and how soon they notice: simulated runs of 200 steps.

    python benchmarks/collapse_detectors.py [--runs 2000] [--first-seed 10000] [--collapses 100]

Prints for each detector the share of healthy runs with an alarm (Wilson's 95% interval), and for each speed
of collapse (steps from its onset to its end) the share noticed, the median delay after the onset, and the
share of the noticed ones in which the alarm came before accuracy had halved (nan: it is not made to fall).
Thresholds were set on seeds below 12000.
"""

from __future__ import annotations

import argparse
from collections import Counter

import numpy as np
from simulated_runs import COLLAPSES, ONSET, SPEEDS, collapsed_run, healthy_run, reward_fell_at

from debate_rl.alarms import DETECTORS
from debate_rl.metrics.intervals import wilson


def false_alarms(runs: int, first_seed: int, steps: int = 200) -> Counter[str]:
    """Return in how many healthy runs each detector fires; "any": in how many one does."""
    found: Counter[str] = Counter()
    for seed in range(first_seed, first_seed + runs):
        curves = healthy_run(seed, steps).curves
        fired = [name for name, one in DETECTORS.items() if one.detect(curves) is not None]
        found.update(fired)
        found["any"] += bool(fired)
    return found


def detections(name: str, speed: int, runs: int, first_seed: int) -> tuple[float, float, float]:
    """Return the share of collapses noticed, their median delay, and the share noticed before reward fell."""
    noticed, delays, before = 0, [], []
    for seed in range(first_seed, first_seed + runs):
        curves = collapsed_run(name, seed, speed=speed).curves
        alarm = DETECTORS[name].detect(curves)
        if alarm is None or (alarm.step < ONSET and name != "format_only"):
            continue
        noticed += 1
        delays.append(alarm.step - ONSET)
        fell = reward_fell_at(curves)
        if fell is not None:
            before.append(alarm.step < fell)
    median = float(np.median(delays)) if delays else float("nan")
    return noticed / runs, median, float(np.mean(before)) if before else float("nan")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--first-seed", type=int, default=20_000)
    parser.add_argument("--collapses", type=int, default=100)
    given = parser.parse_args()
    found = false_alarms(given.runs, given.first_seed)
    speeds = "".join(f" | {f'in {speed}: seen, delay, before':>30}" for speed in SPEEDS)
    print(f"{'detector':<20} | {'false alarms a run':>26}{speeds}")
    for name in [*DETECTORS, "any"]:
        low, high = wilson(found[name] / given.runs, given.runs)
        line = f"{name:<20} | {found[name]:>5} {found[name] / given.runs:.4f} [{low:.4f}, {high:.4f}]"
        for speed in SPEEDS if name in COLLAPSES and given.collapses else ():
            seen, delay, before = detections(name, speed, given.collapses, given.first_seed)
            line += f" | {f'{seen:.2f}, {delay:.0f}, {before:.2f}':>30}"
        print(line, flush=True)


if __name__ == "__main__":
    main()
