"""How things are declared: names with parameters such as 'ece(bins=20)', the defaults, and the papers they cite."""
