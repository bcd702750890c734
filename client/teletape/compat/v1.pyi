"""What `tf.compat.v1` holds. Written by `make reference` from teletape.namespace."""

from teletape.control_flow.compat_v1 import cond as cond
from teletape.control_flow.compat_v1 import while_loop as while_loop
from teletape.control_flow.eager import case as case
from teletape.control_flow.eager import switch_case as switch_case
from teletape.control_flow.folds import foldl as foldl
from teletape.control_flow.folds import foldr as foldr
from teletape.control_flow.folds import scan as scan
from teletape.control_flow.maps import map_fn as map_fn
from teletape.summary.events import SummaryMetadata as SummaryMetadata

__all__ = ["SummaryMetadata", "case", "cond", "foldl", "foldr", "map_fn", "scan", "switch_case", "while_loop"]
