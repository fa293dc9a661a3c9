"""One queue whose server goes away: every discipline, with and without room for all."""
