"""Load a model from one GGUF file, the format of llama.cpp, by unpacking its blocks to full weights."""

from __future__ import annotations

import re
from copy import deepcopy
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeGuard

from debate.settings import install_hint

HEAD = 2**26
"""Number of bytes at a file's beginning that are searched for settings, which may come after a vocabulary."""


def gguf_file(name: str | None) -> Path | None:
    """Return the GGUF file that a model's name refers to, or None if it refers to no such file.

    The name is that of the file, or of a folder with one GGUF file and no config.json. ValueError for a
    missing file, and for a folder with several.
    """
    path = Path(name or "").expanduser()
    if path.suffix.lower() == ".gguf" and not path.is_dir():
        if not path.is_file():
            raise ValueError(f"model.name_or_path: there is no file {name!r}")
        return path
    if name is None or not path.is_dir() or (path / "config.json").is_file():
        return None
    files = sorted(file for file in path.iterdir() if file.suffix.lower() == ".gguf" and file.is_file())
    if len(files) > 1:
        raise ValueError(
            f"model.name_or_path: {name!r} contains {len(files)} GGUF files; name one of them, such as "
            f"{files[0]}"
        )
    return files[0] if files else None


def loads_by_name(name: str | None) -> TypeGuard[str]:
    """Return whether peft and vLLM can load a model by this name: a folder or hub id, not a GGUF file."""
    return name is not None and gguf_file(name) is None


def refuse_no_reader(file: Path) -> None:
    """Raise ImportError if the package that reads GGUF is missing."""
    if find_spec("gguf") is None:
        raise ImportError(
            f"model.name_or_path: {file} needs the package 'gguf', which is not installed: "
            f"{install_hint('gguf')}"
        )


def read_gguf(file: Path) -> tuple[Any, Any]:
    """Return the model's settings and the tokenizer in a GGUF file, without reading its tensors.

    This takes seconds and happens several times per launch, so the result for the last file is cached.
    """
    refuse_more_layers_than_tensors(file)
    return deepcopy(_read(file, file.stat().st_mtime_ns))


def refuse_more_layers_than_tensors(file: Path) -> None:
    """Raise ValueError if a file's header claims more layers than tensors.

    Settings with 2^31 layers would take all memory. Format:
    https://github.com/ggml-org/ggml/blob/master/docs/gguf.md.
    """
    with file.open("rb") as opened:
        head = opened.read(HEAD)
    layers = re.search(rb"\.block_count(?:[\x04\x05]\0{3}(.{4})|[\x0a\x0b]\0{3}(.{8}))", head, re.DOTALL)
    if layers is None:
        return
    count, tensors = int.from_bytes(layers[1] or layers[2], "little"), int.from_bytes(head[8:16], "little")
    if count > tensors:
        raise ValueError(f"its header claims {count} layers but only {tensors} tensors")


@lru_cache(maxsize=1)
def _read(file: Path, changed: int) -> tuple[Any, Any]:
    from transformers import AutoConfig, AutoTokenizer

    where: dict[str, Any] = {"gguf_file": file.name, "trust_remote_code": False}
    return AutoConfig.from_pretrained(file.parent, **where), AutoTokenizer.from_pretrained(
        file.parent, **where
    )


def unpacked() -> dict[str, Any]:
    """Return the settings with which transformers unpacks every block.

    Packed blocks cannot be trained or saved. Before 5.17, transformers always unpacks them.
    """
    import transformers

    kind = getattr(transformers, "GgufConfig", None)
    return {} if kind is None else {"quantization_config": kind(dequantize=True)}


def unreadable(file: Path, error: Exception) -> str:
    """Return one line on why transformers cannot read a file, and what to do."""
    reason = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, NotImplementedError) or "support" in reason:
        return (
            f"model.name_or_path: transformers cannot unpack {file}: {reason.rstrip('.')}; give the same "
            "model as a folder or a hub id"
        )
    return (
        f"model.name_or_path: {file} is incomplete, damaged or not a GGUF file ({reason.rstrip('.')}); "
        "download it again"
    )
