"""An adapter that a server packed: only its two files are taken, and its configuration is written anew."""

import io
import json
import tarfile

import numpy as np
import pytest
from safetensors.numpy import save

from debate_rl.backends import tinker_api

LAYER = "base_model.model.model.layers.0.self_attn.q_proj"
SHAPES = {f"{LAYER}.lora_A.weight": (4, 8), f"{LAYER}.lora_B.weight": (8, 4)}
WEIGHTS = save({name: np.ones(shape, np.float32) for name, shape in SHAPES.items()})
HOSTILE = {"lora_alpha": 32, "target_modules": None, "auto_mapping": {"parent_library": "os"}}


@pytest.fixture
def served(monkeypatch, tmp_path):
    """Return unpacked(files): the folder with what was taken from an archive of these files."""

    def unpacked(files):
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz") as archive:
            for name, content in files.items():
                member = tarfile.TarInfo(name)
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
        packed.seek(0)
        monkeypatch.setattr(tinker_api, "urlopen", lambda url, timeout: packed)
        out = tmp_path / "out"
        out.mkdir()
        tinker_api.unpack_adapter("http://127.0.0.1/x", out)
        return out

    return unpacked


def test_only_an_adapter_is_taken_and_its_configuration_is_ours(served, tmp_path):
    config = json.dumps(HOSTILE).encode()
    files = {"a/adapter_config.json": config, "adapter_model.safetensors": WEIGHTS, "../evil.py": b"1"}
    out = served(files)
    tinker_api.write_adapter_config(out)
    assert {one.name for one in tmp_path.rglob("*.*")} == {"adapter_config.json", "adapter_model.safetensors"}
    written = json.loads((out / "adapter_config.json").read_text())
    assert (written["r"], written["lora_alpha"]) == (4, 32.0)
    assert written["target_modules"] == ["q_proj"]
    assert written["auto_mapping"] is None


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"adapter_config.json": b"[]", "adapter_model.safetensors": WEIGHTS},
        {"adapter_config.json": b'{"lora_alpha": 1}', "adapter_model.safetensors": b"torn"},
        {"adapter_config.json": b'{"lora_alpha": 1}', "adapter_model.safetensors": save({})},
    ],
)
def test_what_is_no_adapter_is_refused(files, served):
    with pytest.raises(ValueError, match="peft cannot load the adapter"):
        tinker_api.write_adapter_config(served(files))


def test_an_archive_comes_from_the_network_alone(tmp_path):
    with pytest.raises(ValueError, match="file:///etc"):
        tinker_api.unpack_adapter("file:///etc/hosts", tmp_path)
