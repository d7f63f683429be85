def annotator_pairs(*a): raise NotImplementedError
