"""A ring piconet without ARQ as one fixed point of TCP's exact chain, token buckets, polled air and radio."""
