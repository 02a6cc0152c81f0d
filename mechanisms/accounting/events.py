"""What happened, as frozen facts; what it costs is the accountants' business."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Gaussian:
    """Gaussian noise of standard deviation `sigma` on answers of the given L2 sensitivity (both in records)."""

    id: str
    l2_sensitivity: float
    sigma: float


@dataclass(frozen=True)
class Laplace:
    """Laplace noise of scale b on answers of the given L1 sensitivity (both in records)."""

    id: str
    l1_sensitivity: float
    scale: float


@dataclass(frozen=True)
class Exponential:
    """One choice by the exponential mechanism at `epsilon`."""

    id: str
    epsilon: float


Event = Gaussian | Laplace | Exponential
