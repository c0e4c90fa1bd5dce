"""The commands: options in, one call into the pipeline, text and files out."""
