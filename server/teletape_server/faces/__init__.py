"""Published functions in the protocols of other projects, for clients that were written for them.

A face is an application of its own below the server's, with its own OpenAPI document: it reads and writes the
protocol's messages, and has no logic. Questions take the way of all calls, so that they are computed together with
others.
"""
