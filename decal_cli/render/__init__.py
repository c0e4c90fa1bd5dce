"""Results as text and data: blocks, and formats that write them; rounding and colour live here."""
