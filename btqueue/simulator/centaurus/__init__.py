"""CentaurusComm: whole messages with bitmaps in place of acknowledgements (Avancha et al. 2002)."""
