"""How often annotators agree: the sparse probability of agreement, and the coefficients that people compare it to."""
