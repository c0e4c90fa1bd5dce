"""Engines that hold the rows: the statement that counts them there, what it found wrong, and connections."""
