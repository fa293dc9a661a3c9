"""Markov chains: stationary vectors, absorption, skip-free and block-structured chains."""
