"""``debate sandbox``: run programs in the sandbox, and print one line of JSON for each."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import orjson
import typer
from pydantic import ValidationError

from debate.tools import Ran
from debate_rl.commands.console import write_json
from debate_rl.commands.options import JsonFile
from debate_rl.config.sandbox import SandboxConfig
from debate_rl.engines import open_sandbox
from debate_rl.formatting import safe_json
from envs.sandbox import Sandbox

MOST_BYTES = 8 << 20
"""Maximum number of bytes to read from a program file; the sandbox refuses programs of this size."""


def sandbox(
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE...", help="Python programs; - reads a program from standard input."),
    ],
    session: Annotated[
        bool,
        typer.Option(
            "--session",
            help="Run the programs one after another in one session, which keeps their variables.",
        ),
    ] = False,
    seconds: Annotated[float | None, typer.Option(help="Maximum wall time of a program in seconds.")] = None,
    memory_mb: Annotated[
        int | None, typer.Option(help="Maximum memory in MB of all processes of a session together.")
    ] = None,
    unsafe: Annotated[
        bool,
        typer.Option(
            "--unsafe",
            help="Run without isolation, with all rights of your user. Only for your own programs.",
        ),
    ] = False,
    json: JsonFile = None,
) -> None:
    """Run programs in the sandbox, and print one line of JSON for each: file, status, output, error, seconds.

    Without --session, each program runs in a fresh session. The exit code is 0 if all programs ran.
    """
    limits = {"seconds": seconds, "memory_mb": memory_mb}
    given = {name: value for name, value in limits.items() if value is not None}
    try:
        settings = SandboxConfig.model_validate({**given, "unsafe": unsafe})
    except ValidationError as error:
        first = error.errors()[0]
        option, said = str(first["loc"][0]).replace("_", "-"), first["msg"]
        raise ValueError(f"--{option} {first['input']}: {said[0].lower()}{said[1:]}") from error
    programs = [(name, _read(name)) for name in files]
    with open_sandbox(settings, warm=0) as box:
        found = asyncio.run(_print_all(box, programs, session=session))
    if json is not None:
        write_json(json, found)


def _read(name: str) -> str:
    if name == "-":
        return sys.stdin.buffer.read(MOST_BYTES).decode("utf-8", "replace")
    with Path(name).open("rb") as file:
        return file.read(MOST_BYTES).decode("utf-8", "replace")


async def _print_all(box: Sandbox, programs: list[tuple[str, str]], *, session: bool) -> list[object]:
    runs = _in_one_session(box, programs) if session else _each_alone(box, programs)
    names, found = iter(programs), list[object]()
    async for ran in runs:
        found.append({"file": next(names)[0], **asdict(ran)})
        print(safe_json(orjson.dumps(found[-1]).decode()), flush=True)
    return found


async def _in_one_session(box: Sandbox, programs: list[tuple[str, str]]) -> AsyncIterator[Ran]:
    async with box.session() as session:
        for _, code in programs:
            yield await session.run(code)


async def _each_alone(box: Sandbox, programs: list[tuple[str, str]]) -> AsyncIterator[Ran]:
    """Yield the result of each program in order. Programs run concurrently, limited by free sessions."""

    async def one(code: str) -> Ran:
        async with box.session() as session:
            return await session.run(code)

    for task in [asyncio.create_task(one(code)) for _, code in programs]:
        yield await task
