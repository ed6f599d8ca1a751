import pytest
import torch
from torch import nn

from learner import LearnerConfig
from learner.update.optimizer import adam_eps, adamw, settings_of, update_per_lr


def parameter(*values: float, dtype: torch.dtype = torch.float64) -> nn.Parameter:
    return nn.Parameter(torch.tensor(values, dtype=dtype))


def test_the_size_of_an_update_by_hand():
    """Step 1 is g / (|g| + eps); in step 2, with g = 3 then 1, m = .18 + .1 over .19, v as below."""
    moved, still = parameter(0.0, 0.0), parameter(5.0, 5.0)
    optimizer = adamw([moved, still], LearnerConfig(lr=0.01, adam_eps=1.0, betas=(0.9, 0.5)))
    assert update_per_lr(optimizer).item() == 0  # nothing was updated
    moved.grad = torch.tensor([3.0, 0.0], dtype=torch.float64)
    optimizer.step()
    assert update_per_lr(optimizer).item() == pytest.approx(0.75 / 2)  # one of four numbers moved, by .75 lr
    assert moved[0].item() == pytest.approx(-0.75 * 0.01)
    moved.grad = torch.tensor([1.0, 0.0], dtype=torch.float64)
    optimizer.step()
    m, v = (0.1 * 0.9 * 3 + 0.1 * 1) / 0.19, (0.5 * 0.5 * 9 + 0.5 * 1) / 0.75
    assert update_per_lr(optimizer).item() == pytest.approx(m / (v**0.5 + 1) / 2)
    assert moved[0].item() == pytest.approx(-0.01 * (0.75 + m / (v**0.5 + 1)))


def test_pieces_of_a_parameter_add_up(monkeypatch):
    weight = parameter(*range(1, 12))
    optimizer = adamw([weight], LearnerConfig(lr=0.1, adam_eps=2.0))
    weight.grad = weight.detach().clone()
    before = weight.detach().clone()
    optimizer.step()
    monkeypatch.setattr("learner.update.optimizer.PIECE", 3)
    change = (weight.detach() - before) / 0.1
    assert update_per_lr(optimizer).item() == pytest.approx(change.square().mean().sqrt().item())


@pytest.mark.parametrize(
    ("dtype", "settings", "expected"),
    [
        (torch.float32, {}, 1e-8),
        (torch.bfloat16, {}, 1e-5),
        (torch.float32, {"warmup_steps": 0}, 1e-5),
        (torch.bfloat16, {"adam_eps": 1e-4}, 1e-4),
    ],
)
def test_epsilon_is_that_of_the_weights_type(dtype, settings, expected):
    assert adam_eps([parameter(1.0, dtype=dtype)], LearnerConfig(**settings)) == expected


@pytest.mark.parametrize("on_gpu", [False, True])
def test_one_kernel_on_a_gpu_and_no_copy_of_the_weights_anywhere(on_gpu):
    class Weight:
        is_cuda = on_gpu

        def element_size(self) -> int:
            return 4

    settings = settings_of([Weight()], LearnerConfig())  # type: ignore[list-item]
    assert (settings["fused"], settings["foreach"]) == (on_gpu, False)
