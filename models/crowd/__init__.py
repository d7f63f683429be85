"""What the models of a crowd with true labels share.

Each annotator says labels of items, and each item has one true label. Whether anybody agrees more than chance would
have it (`gate`), how much less than independent evidence the annotations of an item are worth (`dependence`), which
annotators agree more than the model can explain (`pairs`) and which of them share a source (`groups`) are asked in the
same way of every member.
"""
