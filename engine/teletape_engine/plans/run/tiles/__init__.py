"""Tiles: groups of long instructions that run part by part, within the cache, on as many threads as BLAS has."""
