"""Results as text and data: blocks, and formats that write them; colour lives here."""
