"""Bluetooth below IP: L2CAP and token buckets, polling, bridges, voice, ARQ, adaptive packets, the radio."""
