"""Two piconets with a walk-in bridge (Venugopal 2006, chapter 4)."""
