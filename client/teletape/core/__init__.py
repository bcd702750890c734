"""The core: all that recording on a tape needs. Read this to understand the SDK.

Nothing here knows the functions of `tf` or the extras.
"""
