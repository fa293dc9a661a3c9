"""One link with ARQ and TCP in both directions (Johansson 2000)."""
