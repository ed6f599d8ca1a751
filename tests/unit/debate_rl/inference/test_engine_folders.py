"""The folders in which a pool of engines has weights, while engines that are none answer."""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from debate_rl.inference import engine_pool
from debate_rl.inference.engine_pool import EnginePool


class NoProcess:
    """Starts nothing."""

    pid = 0

    def __init__(self, factory, settings, address, log, environment):
        self.settings = settings

    def start(self):
        """Nothing is started."""

    wait = close = start

    def ended(self):
        return ""


class Pool(EnginePool):
    """Notes what was there when the engines were told of new weights."""

    def _client_settings(self, addresses):
        return {"addresses": tuple(addresses)}

    async def _ask(self, index, method, *arguments):
        self.seen = names(Path(arguments[0]).parent)


def names(folder):
    return sorted(path.read_text() for path in folder.glob("version_*/weights"))


def write(weights, folder):
    folder.mkdir()
    (folder / "weights").write_text(str(weights))


@pytest.mark.parametrize(
    ("kept", "seen", "left"),
    [(0, "0 01 12 23", "0 1 2 3"), (1, "0 01 012 123", "0 01 12 23")],
)
@pytest.mark.parametrize("elsewhere", [False, True])
def test_weights_before_the_newest_stay_for_servers_alone(kept, seen, left, elsewhere, tmp_path, monkeypatch):
    monkeypatch.setattr(engine_pool, "RemoteProcess", NoProcess)
    monkeypatch.setattr(engine_pool, "speech_of", lambda: None)
    home, folder = (TemporaryDirectory(dir=tmp_path) for _ in range(2))
    places = {"home": home, "folder": folder if elsewhere else None, "log": tmp_path / "log"}
    pool = Pool([{}], [{}], write=write, kept=kept, **places)
    where = Path(folder.name if elsewhere else home.name)
    for version in range(4):
        asyncio.run(pool.update(version, version))
        assert "".join(pool.seen) == seen.split()[version]
        assert "".join(names(where)) == left.split()[version]
    pool.close()
    folder.cleanup()
    assert not where.exists()
    assert not Path(home.name).exists()
