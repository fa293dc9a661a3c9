"""Range checks shared by the laws that also run traced by JAX."""

from typing import Any

import numpy as np


def require_in_range(**values: Any) -> None:
    """Check that losses are in [0, 1) and everything else is positive; traced values pass.

    An argument is a loss if its name ends in "loss".

    Raises:
        ValueError: a value that is known is out of range or no number; the message names it.
    """
    for name, value in values.items():
        try:
            known = np.asarray(value, dtype=np.float64)
        except (
            Exception
        ) as unknown:  # a traced value refuses conversion, with a type that only JAX could name
            if hasattr(value, "aval"):
                continue
            raise ValueError(f"{name} must be a number, got {value!r}") from unknown
        is_loss = name.endswith("loss")
        inside = (known >= 0.0) & (known < 1.0) if is_loss else known > 0.0
        if not np.all(inside):
            raise ValueError(f"{name} must be {'in [0, 1)' if is_loss else 'positive'}, got {value}")
