"""Coreference as a posterior of partitions: the sampler behind ``coreference="partition"`` of `mpa`."""
