"""`teletape.adapters`: a function whose derivatives Teletape computes, as a function of other libraries.

Each of its modules is imported by itself and needs its library: `teletape.adapters.scipy`, `teletape.adapters.torch`,
`teletape.adapters.jax`, `teletape.adapters.pytensor`.
"""
