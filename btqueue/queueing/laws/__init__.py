"""Laws on the slots, with the mass beyond their end, and phase-type laws."""
