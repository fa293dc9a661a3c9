"""Any network of connections, followed from event to event with seeded chance until averages are known."""
