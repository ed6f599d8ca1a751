"""What the command line says when something is wrong: one line that says where."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

NO_GO, WRONG, INTERRUPTED, TERMINATED = 1, 2, 130, 143
"""Exit codes: a run that an alarm ended, or a doctor's no; a user's mistake; 128 and the number of SIGINT or
SIGTERM."""
LONGEST = 2000
"""Characters of an error's line."""
HOME = Path(__file__).parents[2]
"""The folder that holds our packages."""
PACKAGES = ("debate", "envs", "rewards", "learner", "transcripts")
EXTRAS: dict[str, str] = dict.fromkeys(("torch", "transformers", "peft", "safetensors"), "train")
EXTRAS |= {"pyarrow": "train", "httpx": "openai", "vllm": "vllm", "bitsandbytes": "quantize"}
EXTRAS |= dict.fromkeys(("jinja2", "starlette", "textual", "uvicorn"), "inspect") | {"matplotlib": "report"}


class Ended(SystemExit):
    """A command that a signal stopped; ``line`` is what it prints last, ``code`` its exit code."""

    def __init__(self, line: str, code: int) -> None:
        super().__init__(code)
        self.line = line


@contextmanager
def end_on_stop() -> Iterator[None]:
    """Let a run that was stopped by a signal end the command with its last line."""
    from debate_rl.training.stops import Stopped

    try:
        yield
    except Stopped as stop:
        raise Ended(str(stop), stop.exit_code) from stop


def one_line(error: BaseException | str) -> str:
    r"""Return an error or a warning as one line of printable text.

    >>> one_line(ValueError("lr: must be positive,\n  got \x1b[2J-1"))
    'lr: must be positive, got �[2J-1'
    >>> one_line(FileNotFoundError(2, "No such file or directory", "train.jsonl"))
    'train.jsonl: No such file or directory'
    """
    text = " ".join(_text_of(error).split()) or type(error).__name__
    if len(text) > LONGEST:  # a value of a file of others
        text = f"{text[: LONGEST - 100]} ... {text[-80:]}"
    return "".join(c if c.isprintable() else "�" for c in text)  # imports nothing: a package may be missing


def _text_of(error: BaseException | str) -> str:
    if isinstance(error, ModuleNotFoundError) and error.name and error.name.partition(".")[0] in EXTRAS:
        from debate.settings import install_hint

        package = error.name.partition(".")[0]
        return f"the package {package!r} is not installed: {install_hint(EXTRAS[package])}"
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return str(error)


def refuse_windows(platform: str) -> None:
    """ImportError on Windows: run folders are locked and answers graded by what POSIX systems have.

    >>> refuse_windows("linux")
    """
    if platform == "win32":
        raise ImportError("debate-rl runs on Linux and macOS; on Windows, use it inside WSL 2")


def refuse_torchrun(words: Sequence[str], environment: Mapping[str, str]) -> None:
    """ValueError where torchrun has started several processes of a command that is not made for them.

    Others set WORLD_SIZE too, for programs of their own.

    >>> refuse_torchrun(["train", "RECIPE"], {"TORCHELASTIC_RUN_ID": "none", "WORLD_SIZE": "6"})
    >>> refuse_torchrun(["eval", "RUN"], {"WORLD_SIZE": "6"})
    """
    processes = environment.get("WORLD_SIZE", "1") if "TORCHELASTIC_RUN_ID" in environment else "1"
    if processes != "1" and words[:1] != ["train"]:
        raise ValueError(f"torchrun: only debate train is started {processes} times at once; leave it out")


def refuse_shadows(home: Path = HOME) -> None:
    """ImportError when a folder or file of the user's own stands in the way of one of our packages."""
    for name in PACKAGES:
        spec = find_spec(name)
        file = Path(spec.origin).resolve() if spec and spec.origin else None
        if file is None:
            raise ImportError(
                f"the package {name!r} is missing beside {home / 'debate_rl'}; install debate-rl again"
            )
        if file != (home / name / "__init__.py").resolve():
            owner = file.parent if file.name == "__init__.py" else file
            raise ImportError(
                f"{owner} stands in the way of debate-rl's own package {name!r}; rename it, "
                "or take its folder out of PYTHONPATH and run from elsewhere"
            )
