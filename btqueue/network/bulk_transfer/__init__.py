"""Downloads through a gateway into a piconet (Suliman)."""
