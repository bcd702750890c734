"""`tf.summary.experimental`: the default step, and scopes for a program's own kinds of summaries."""

from teletape.tf.summary.conditions import get_step, set_step, summary_scope

__all__ = ["get_step", "set_step", "summary_scope"]
