"""What each command does: read, call the library, print; one file a group of verbs.

Every function takes the parsed arguments. Input is looked at in the order of what it costs: names, folders and files
first, then the content of files, and only then JAX.
"""
