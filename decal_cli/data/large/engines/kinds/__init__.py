"""The engines, one file each: how each spells SQL, and how it is connected to and asked."""
