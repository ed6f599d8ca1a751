"""Whether the hub can be reached: no test asks the hub itself."""

import socket
import sys
import threading
from types import SimpleNamespace

import pytest
from huggingface_hub import constants

from envs import hub
from envs.data.records import read_hub
from envs.errors import DataError, UnreachableError


@pytest.fixture(autouse=True)
def _asked_anew(monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    for name in ("https_proxy", "http_proxy", "all_proxy", "HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    hub.is_reachable.cache_clear()
    yield
    hub.is_reachable.cache_clear()


def test_a_hub_that_listens_is_reached_and_one_that_does_not_is_not(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        monkeypatch.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{port}")
        assert hub.is_reachable()
    hub.is_reachable.cache_clear()
    assert not hub.is_reachable()  # nobody listens any more


def test_a_look_up_that_hangs_costs_no_more_than_the_limit(monkeypatch):
    over = threading.Event()

    def hang(*_: object) -> None:
        over.wait()
        raise OSError

    monkeypatch.setattr(hub, "LIMIT_S", 0.01)
    monkeypatch.setattr(socket, "create_connection", hang)
    assert not hub.is_reachable()
    over.set()


def test_the_proxy_is_asked_where_there_is_one(monkeypatch):
    monkeypatch.setenv("https_proxy", "http://proxy.example:3128")
    assert hub._first_stop("https://hub.example") == ("proxy.example", 3128)
    monkeypatch.setenv("no_proxy", "hub.example")
    assert hub._first_stop("https://hub.example") == ("hub.example", 443)


@pytest.fixture
def datasets(monkeypatch):
    """The hub's client, which knows that it is offline."""
    client = SimpleNamespace(config=SimpleNamespace(HF_HUB_OFFLINE=False))
    monkeypatch.setitem(sys.modules, "datasets", client)
    monkeypatch.setitem(sys.modules, "datasets.config", client.config)
    return client


@pytest.mark.parametrize("reached", [True, False])
def test_the_client_is_told_to_try_nothing_where_the_hub_is_out_of_reach(reached, datasets, monkeypatch):
    monkeypatch.setattr(hub, "_takes_connection", lambda *_: reached)
    hub.spare_retries()
    assert (not reached, not reached) == (constants.HF_HUB_OFFLINE, datasets.config.HF_HUB_OFFLINE)


@pytest.mark.parametrize(
    ("reached", "error", "kind", "said"),
    [
        (False, ConnectionError("off"), UnreachableError, "not in the cache of this machine, and the hub"),
        (True, ConnectionError("no\nroute"), DataError, r"could not be loaded \('no\\nroute'\)"),
        (False, ValueError("no such config"), DataError, "no such config"),
    ],
)
def test_data_that_is_not_reached_is_one_line(reached, error, kind, said, datasets, monkeypatch):
    def load(*_: object, **__: object) -> None:
        raise error

    datasets.load_dataset = load
    monkeypatch.setattr(hub, "_takes_connection", lambda *_: reached)
    with pytest.raises(DataError, match=said) as raised:
        list(read_hub("somebody/set", (None,), "train", {}))
    assert type(raised.value) is kind
    assert "env.path" in str(raised.value)
    assert str(raised.value).isprintable()
