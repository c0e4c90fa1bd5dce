"""The options of the command line, as the parser, help, completion and man pages read them."""
