"""Networks of several piconets that walk-in bridges join: one fixed point."""
