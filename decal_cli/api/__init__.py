"""The Python API: every verb on arrays, data frames and files, with answers for notebooks."""
