"""``debate new env|reward|recipe NAME``: write a working skeleton and its test."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from debate.files import write_text
from debate_rl.commands.console import plain_console, write_json
from debate_rl.commands.options import JsonFile

SKELETONS = Path(__file__).parents[1] / "skeletons"
NEXT = {
    "env": "PYTHONPATH=. debate train quickstart env.kind={name}:{title} env.levels=none env.limit=none "
    "warm_start=none train.steps=1 held_out.limit=8  # a random model: name your own by model.name_or_path",
    "reward": "PYTHONPATH=. debate train quickstart rewards.peer={name}:{name}",
    "recipe": "debate train {name}.toml",
}
"""What to type after the test."""


def new(
    what: Annotated[
        Literal["env", "reward", "recipe"],
        typer.Argument(help="An environment, a rule that rewards votes, or a recipe."),
    ],
    name: Annotated[str, typer.Argument(help="Name of the files and of what they define, such as my_task.")],
    json: JsonFile = None,
) -> None:
    """Write a working skeleton to the current folder, with its test."""
    if not (name.isidentifier() and name == name.lower()):
        raise ValueError(f"{name!r}: must be a name of lower-case letters, digits and underscores")
    title = "".join(part.capitalize() for part in name.split("_"))
    [own] = SKELETONS.glob(f"{what}.[pt][yo]*")
    files = {Path(f"{name}{own.suffix}"): own, Path(f"test_{name}.py"): SKELETONS / f"{what}_check.py"}
    if taken := next((path for path in files if path.exists()), None):
        raise ValueError(f"{taken}: exists already; choose another name")
    for path, skeleton in files.items():
        text = skeleton.read_text("utf-8").replace("Skeleton", title).replace("skeleton", name)
        write_text(path, text)
    if json is not None:
        write_json(json, {"files": [str(path) for path in files]})
    say = plain_console(stderr=json == "-").print
    say(f"written: {', '.join(map(str, files))}", "next:", sep="\n")
    say(f"  PYTHONPATH=. pytest test_{name}.py")
    say(f"  {NEXT[what].format(name=name, title=title)}", soft_wrap=True, markup=False)
