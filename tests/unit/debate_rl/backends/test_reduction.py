"""Whether a server sums or averages losses is measured, on fake servers with one weight."""

from types import SimpleNamespace

import numpy as np
import pytest

from debate_rl.backends import tinker_api
from debate_rl.backends.tinker_api import TinkerService

IDS = [1, 2, 3]


class Client:
    """A model with one weight: each token's log-probability. Adam without momentum learns it."""

    def __init__(self, *, sums: bool, reports: bool, uses_epsilon: bool, learns: bool = True) -> None:
        self.sums, self.reports, self.uses_epsilon, self.learns = sums, reports, uses_epsilon, learns
        self.weight = -3.0

    def forward(self, data, _loss):
        found = SimpleNamespace(data=[self.weight] * (len(IDS) - 1))
        return done(SimpleNamespace(loss_fn_outputs=[{"logprobs": found}] * len(data)))

    def forward_backward(self, data, _loss):
        rows = [np.asarray(datum.advantages) for datum in data]
        self.gradient = sum(row.sum() if self.sums else row.mean() / len(rows) for row in rows)
        return done(None)

    def optim_step(self, adam):
        eps = adam.eps if self.uses_epsilon else 1e-8
        if self.learns:
            self.weight += adam.learning_rate * self.gradient / (abs(self.gradient) + eps)
        norms = {"skyrl.ai/grad_norm": abs(self.gradient)} if self.reports else {}
        return done(SimpleNamespace(metrics=norms))


def done(value):
    return SimpleNamespace(result=lambda timeout: value)


def measure(monkeypatch, client: Client) -> str:
    monkeypatch.setattr(tinker_api, "types", SimpleNamespace(AdamParams=SimpleNamespace))
    monkeypatch.setattr(tinker_api, "_datum", lambda _row, _old, one: SimpleNamespace(advantages=one[1:]))
    monkeypatch.setattr(tinker_api, "tinker", SimpleNamespace(TinkerError=OSError))
    service = TinkerService(None, None, IDS)
    monkeypatch.setattr(service, "_new_client", lambda: client)
    return service.reduction


@pytest.mark.parametrize("sums", [True, False])
@pytest.mark.parametrize(("reports", "uses_epsilon"), [(True, True), (True, False), (False, True)])
def test_the_reduction_is_found(monkeypatch, sums, reports, uses_epsilon):
    client = Client(sums=sums, reports=reports, uses_epsilon=uses_epsilon)
    assert measure(monkeypatch, client) == ("sum" if sums else "row_mean")


@pytest.mark.parametrize("learns", [True, False])
def test_a_server_that_shows_nothing_is_refused(monkeypatch, learns):
    client = Client(sums=True, reports=False, uses_epsilon=False, learns=learns)
    with pytest.raises(ValueError, match=r"^engine.base_url: .*(epsilon|does not change)"):
        measure(monkeypatch, client)
