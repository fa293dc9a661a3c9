"""Publications reproduced: their figures drawn again, their claims checked."""
