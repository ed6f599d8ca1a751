"""The README.md of exported weights: how to load them, what they can do, and the recipe they came from."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import tomli_w

from debate.files import read_json
from debate_rl.config import Config
from debate_rl.formatting import counted, interval, number, printable, title
from debate_rl.gguf_file import loads_by_name
from debate_rl.metrics.held_out import read_held_out, sentence
from debate_rl.metrics.intervals import clustered_mean, thirds
from debate_rl.metrics.step_log import read_metrics
from debate_rl.runs.folder import RunFolder, plain_config

TRAINING = ("accuracy", "winner/accuracy", "judge/accuracy", "format/valid")
HELD_OUT = re.compile(
    r"eval/(direct/(accuracy|self_consistency)|judge/accuracy|"
    r"debate/(accuracy/round_\d+|winner/accuracy|winner_minus_self_consistency|valid_xml))"
)

LONGEST = 4000
"""Characters of a fact that a run says of itself."""
Row = dict[str, float | None]


def loading_code(folder: Path | str) -> str:
    """Return the three lines that load a model and its tokenizer."""
    return (
        "from transformers import AutoModelForCausalLM, AutoTokenizer\n"
        f"tokenizer = AutoTokenizer.from_pretrained({str(folder)!r})\n"
        f'model = AutoModelForCausalLM.from_pretrained({str(folder)!r}, dtype="auto")'
    )


def model_card(
    run: Path, config: Config, *, kind: str, step: int, folder: Path, prompt: str | None = None
) -> str:
    """Return the card of the weights after ``step`` steps of a run, as Markdown.

    It begins with what held-out accuracy was before training and is now. ``kind``: "adapter", "merged" or
    "full". The figures are those up to that step; ``prompt`` is one that the model was trained on.
    """
    parts = RunFolder(run)
    rows = [row for row in _metrics(parts.metrics) if (row["step"] or 0) < step]
    base = config.model.name_or_path or "a small Qwen3 model built from random weights"
    made = {"adapter": "LoRA adapter", "merged": "weights with the LoRA adapter merged in", "full": "weights"}
    return "\n".join(
        (
            *_front_matter(config, kind),
            f"# {folder.resolve().parent.name if folder.name == 'export' else folder.name}",
            "",
            sentence([one for one in read_held_out(run) if one.step <= step]),
            "",
            f"The {made[kind]} after {step} steps of reinforcement learning by multi-agent debate "
            f"({config.debate.num_agents} agents, {config.debate.num_rounds} rounds, "
            f"{config.env.kind}). Base: {base}.",
            "",
            *_block("python", loading_code(folder)),
            *_adapter_note(config, kind),
            *(("## A prompt as in training", "", *_block("text", prompt)) if prompt else ()),
            "## Figures",
            "",
            *_held_out(rows),
            *_training(rows),
            "## Recipe",
            "",
            *_block("toml", tomli_w.dumps(plain_config(config)).rstrip()),
            "## Made with",
            "",
            *_provenance(parts.facts),
        )
    )


def _front_matter(config: Config, kind: str) -> Iterator[str]:
    name = config.model.name_or_path
    yield "---"
    if name and not Path(name).expanduser().exists():
        yield f"base_model: {json.dumps(name)}"
    yield f"library_name: {'peft' if kind == 'adapter' else 'transformers'}"
    yield "pipeline_tag: text-generation"
    yield "tags: [debate-rl, reinforcement-learning, grpo" + (", lora]" if config.model.lora_rank else "]")
    yield "---"


def _adapter_note(config: Config, kind: str) -> Iterator[str]:
    if kind == "adapter":
        yield "transformers needs peft beside it to load an adapter, and takes the generation settings of the"
        yield "base; those of training are in generation_config.json."
        if not loads_by_name(config.model.name_or_path):
            yield "Its base lies in `base/`: if the folder is moved, adapter_config.json needs the new place."
        yield ""


def _block(language: str, text: str) -> tuple[str, ...]:
    fence = "```" if "```" not in text else "~~~~~~"
    return f"{fence}{language}", text, fence, ""


def _metrics(path: Path) -> list[Row]:
    return read_metrics(path) if path.exists() else []


def _held_out(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the table of the newest evaluation, with the intervals that it logged."""
    evaluated = [row for row in rows if "eval/debate/winner/accuracy" in row]
    if not evaluated:
        yield from ("No held-out evaluation was made up to this step.", "")
        return
    row = evaluated[-1]
    yield (
        f"On {row.get('eval/problems') or 0:.0f} held-out problems after {int(row['step'] or 0) + 1} steps, "
        "sampled as in training; 95% intervals, clustered by problem:"
    )
    yield from ("", "| | value | 95% interval |", "|---|---|---|")
    for name, value in row.items():
        if HELD_OUT.fullmatch(name) and value is not None:
            low, high = row.get(f"{name}/low"), row.get(f"{name}/high")
            yield f"| {title(name)} | {number(value)} | {interval(low, high)} |"
    yield ""


def _training(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the table of the means over training problems; one step alone would be noise."""
    if not rows:
        return
    steps = counted(len(rows), "step")
    yield f"On training problems, mean of the last third of {steps}; 95% intervals over steps:"
    yield from ("", "| | value | 95% interval |", "|---|---|---|")
    for name in TRAINING:
        values = [value for row in rows if (value := row.get(name)) is not None]
        late = [values[index] for index in thirds(range(len(values)))[-1]]
        if late:
            yield f"| {title(name)} | {number(fmean(late))} | {_interval(late)} |"
    yield ""


def _interval(values: Sequence[float]) -> str:
    """Return the t interval of a mean share, within 0 and 1; nothing where the values have no spread.

    >>> _interval([0.4, 0.5, 0.6]), _interval([0.5])
    ('0.252 to 0.748', '')
    """
    if len(set(values)) < 2:
        return ""
    estimate = clustered_mean(values, range(len(values)))
    return interval(max(estimate.low, 0.0), min(estimate.high, 1.0))


def _provenance(path: Path) -> Iterator[str]:
    facts: dict[str, Any] = read_json(path) if path.exists() else {}
    try:
        start = (facts.get("starts") or [{}])[-1]
        rows = {
            "versions": ", ".join(f"{name} {number}" for name, number in start.get("versions", {}).items()),
            "commit": start.get("commit"),
            "processor": start.get("hardware", {}).get("cpu"),
            "GPUs": ", ".join(start.get("hardware", {}).get("gpus", [])),
            "data": ", ".join(f"{name} {checksum}" for name, checksum in (facts.get("data") or {}).items()),
            "seed": facts.get("seed"),
        }
    except (AttributeError, TypeError, LookupError) as error:
        raise ValueError(f"{path}: is not what a run says of itself: {error}") from error
    for name, value in rows.items():
        if value not in (None, ""):
            yield f"- {name}: {printable(str(value))[:LONGEST]}"
    yield ""
