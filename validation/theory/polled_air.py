"""What flows see of the polled air in the model of a piconet, compiled once for all piconets of a size."""

from math import inf

import jax
import jax.numpy as jnp

from btqueue.network.piconet.air import Passage, passage
from btqueue.network.piconet.coupling import System, network_of


@jax.jit
def passages_of(system: System, offered: jax.Array) -> tuple[Passage, jax.Array]:
    """By class, without windows, if flows offer so many segments a second, (F,); and the cycle (slots)."""
    network = network_of(*system)

    def seen(one, ways):
        return passage(network.question(offered, one, ways, jnp.asarray(inf)))

    return jax.vmap(seen)(system.structure.classes, network.ways)
