"""The texts of a safetensors body's metadata that are JSON: a request's other fields, and the rest of an answer."""

from __future__ import annotations

from typing import Final

REQUEST: Final = "request"
ANSWER: Final = "answer"
