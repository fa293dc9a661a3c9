"""One piconet whose flows begin or end at the central, as queues: polled pairs, token buckets, TCP's rate."""
