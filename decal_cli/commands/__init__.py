"""The commands: options in, one call into the pipeline, text and files out."""

import decal_cli.commands.judging  # declares its commands, which help lists first

# isort: split
import decal_cli.commands.acting  # declares the others
