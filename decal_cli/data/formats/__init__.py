"""Formats of inputs: the bytes of files, folders and objects in stores, and the columns that they hold."""
