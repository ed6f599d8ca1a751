"""An exported judge: its weights and the debate protocol that it was trained with.

judge.toml      the keys of [debate] and [model] that affect ballots
prompts.toml    the prompt set that it was trained with
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tomli_w

from debate import DebateConfig
from debate.files import read_toml
from debate.prompting.texts import prompt_path
from debate_rl.config.models import ModelConfig

JUDGE, PROMPTS = "judge.toml", "prompts.toml"
DECIDE = (
    *(
        "protocol",
        "num_agents",
        "num_rounds",
        "final_ballot",
        "ballot",
        "history_rounds",
        "order",
        "handles",
        "stop",
        "prompt_stops",
    ),
    *("max_tokens", "thinking_tokens", "context_tokens", "top_p", "top_k"),
)
"""Keys of [debate] that affect a ballot, in addition to prompts and personas."""
KEYS = {"debate": (*DECIDE, "personas"), "model": ("chat",)}
"""The keys allowed in judge.toml, by table. The file may come from an untrusted source."""


def judge_files(protocol: DebateConfig, model: ModelConfig) -> dict[str, str]:
    """Return the text of judge.toml and prompts.toml, by file name."""
    plain = protocol.model_dump(mode="json", exclude_none=True)
    personas = [
        {"name": one.name, "instructions": one.instructions, "temperature": one.temperature}
        for one in protocol.agent_personas
    ]
    debate = {name: plain[name] for name in DECIDE if name in plain} | {"personas": personas}
    tables = {"debate": debate} | ({} if model.chat is None else {"model": {"chat": model.chat}})
    return {JUDGE: tomli_w.dumps(tables), PROMPTS: prompt_path(protocol.prompts).read_text(encoding="utf-8")}


def judge_tables(folder: Path) -> Mapping[str, Any]:
    """Return a judge's folder as the tables of a recipe, or {} if it holds no judge.

    OSError or ValueError for a missing or damaged file.
    """
    path = folder / JUDGE
    if not any((folder / name).exists() for name in (JUDGE, PROMPTS)):
        return {}
    try:
        tables = read_toml(path)
    except ValueError as error:
        raise ValueError(f"{path}: not TOML: {error}") from error
    for name, table in tables.items():
        if name not in KEYS:
            raise ValueError(f"{path}: has a table [{name}], but a judge has only [debate] and [model]")
        if not isinstance(table, dict):
            raise ValueError(f"{path}: {name}: must be a table of settings (got {table!r})")
        for key in table:
            if key not in KEYS[name]:
                raise ValueError(
                    f"{path}: {name}.{key}: does not affect ballots; a judge's keys are "
                    f"{', '.join(KEYS[name])}"
                )
    if "debate" not in tables:
        raise ValueError(f"{path}: has no table [debate], which defines the judge's ballots; export it again")
    return {**tables, "debate": {**tables.get("debate", {}), "prompts": str(folder / PROMPTS)}}
