"""Muon for the stacked hidden matrices, AdamW for everything else."""

import torch
from network import Bert
from torch import Tensor, nn

MUON_RATE, MUON_DECAY = 3e-3, 0.3  # the decay keeps the layers' outputs near their inputs' size and softmax unsaturated
ADAM_RATE, ADAM_DECAY = 1e-3, 0.01
PAIR_RATE = 0.2  # of ADAM_RATE: at the full rate the next-sentence head's noise makes [CLS] collapse to a constant
MATRICES = ("attention", "up", "down", "pooler", "transform")
PAIR = ("pair", "pair_bias")


def orthogonal(matrices: Tensor, steps: int = 5) -> Tensor:
    """The nearest orthogonal factor, roughly: singular values of [batch, m, n] pushed into about 0.7 to 1.2.

    Newton-Schulz with the quintic of K. Jordan's Muon (2024), in bfloat16.
    """
    x = matrices.bfloat16()
    tall = x.shape[-2] > x.shape[-1]
    x = x.mT.contiguous() if tall else x
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(steps):
        square = x @ x.mT
        x = 3.4445 * x + (-4.7750 * square + 2.0315 * (square @ square)) @ x
    return (x.mT if tall else x).float()


class Muon:
    """Momentum 0.95 (Nesterov), orthogonalised; the step has AdamW's usual root mean square, 0.2 * rate."""

    def __init__(self, parameters: list[nn.Parameter]) -> None:
        self.parameters = parameters
        self.momenta = [torch.zeros_like(parameter) for parameter in parameters]

    @torch.no_grad()
    def step(self, rate: float) -> None:
        for parameter, momentum in zip(self.parameters, self.momenta, strict=True):
            if parameter.grad is None:
                continue
            momentum.lerp_(parameter.grad, 0.05)
            ahead = parameter.grad.lerp(momentum, 0.95)
            update = orthogonal(ahead.reshape(-1, *ahead.shape[-2:])).view_as(parameter)
            parameter.mul_(1 - rate * MUON_DECAY)
            parameter.add_(update, alpha=-rate * 0.2 * max(parameter.shape[-2:]) ** 0.5)


class Optimizer:
    """Both, with one relative rate between 0 and 1."""

    def __init__(self, network: Bert) -> None:
        named = dict(network.named_parameters())
        self.muon = Muon([named[name] for name in MATRICES])
        self.rest = [parameter for name, parameter in named.items() if name not in MATRICES]
        groups = [
            {"params": [parameter for name, parameter in named.items() if name not in MATRICES + PAIR], "share": 1.0},
            {"params": [named[name] for name in PAIR], "share": PAIR_RATE},
        ]
        self.adam = torch.optim.AdamW(groups, lr=ADAM_RATE, betas=(0.9, 0.98), weight_decay=ADAM_DECAY, fused=True)

    def step(self, relative_rate: float) -> None:
        """Clips the gradients' norm at 1, steps and clears them."""
        nn.utils.clip_grad_norm_([*self.rest, *self.muon.parameters], 1.0)
        for group in self.adam.param_groups:
            group["lr"] = ADAM_RATE * relative_rate * group["share"]
        self.adam.step()
        self.muon.step(MUON_RATE * relative_rate)
        for parameter in [*self.rest, *self.muon.parameters]:
            parameter.grad = None

    def state(self) -> dict[str, object]:
        return {"adam": self.adam.state_dict(), "momenta": self.muon.momenta}

    def load(self, state: dict[str, object]) -> None:
        self.adam.load_state_dict(state["adam"])  # type: ignore[arg-type]
        self.muon.momenta = state["momenta"]  # type: ignore[assignment]
