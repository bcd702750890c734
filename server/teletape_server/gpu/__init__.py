"""One process for each GPU, which several sessions share: each has a thread, a memory pool and a stream of its own."""
