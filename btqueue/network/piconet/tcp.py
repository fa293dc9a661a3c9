"""What TCP makes of a round trip and of independent losses: the reduced chain of NewReno."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from btqueue.transport.reduced_chain import LARGEST_WINDOW, ReducedStructure, reduced_structure
from btqueue.transport.reduced_rates import ReducedRates, reduced_rates

LOSSLESS = 1e-12
"""Probability of a loss that takes the place of none."""


@partial(jax.tree_util.register_dataclass, data_fields=[], meta_fields=["structure"])
@dataclass(frozen=True)
class TcpLaw:
    """The chain of a window, discrete: a program of its own."""

    structure: ReducedStructure


def law(window: int) -> TcpLaw:
    """Return the law of a window."""
    return TcpLaw(reduced_structure(min(window, LARGEST_WINDOW)))


def law_rates(
    of: TcpLaw, data_loss: Any, ack_loss: Any, *, rtt_s: Any, min_rto_s: Any, max_rto_s: Any
) -> ReducedRates:
    """Return what a greedy NewReno connection makes of a round trip and independent losses."""
    losses = (jnp.clip(loss, LOSSLESS, 1.0 - 1e-9) for loss in (data_loss, ack_loss))
    return reduced_rates(of.structure, *losses, rtt=rtt_s, min_rto=min_rto_s, max_rto=max_rto_s)
