"""Tables in, frozen PyTrees out."""
