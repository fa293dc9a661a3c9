"""Loads over outside links and at most one piconet: TCP or datagrams that the network carries, or does not."""
