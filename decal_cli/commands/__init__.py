"""One run of a command, a file each: options in, a call into the pipeline, text and files out."""
