"""The commands, one file each: options in, one call into the pipeline, text and files out."""
