"""A piconet whose peripherals send to each other in a ring, without ARQ (Venugopal 2006, chapter 3)."""
