"""What `tf.strings` holds. Written by `make reference` from scripts/public_surface.py."""

from teletape.extras.text.buckets import to_hash_bucket as to_hash_bucket
from teletape.extras.text.buckets import to_hash_bucket_fast as to_hash_bucket_fast
from teletape.extras.text.buckets import to_hash_bucket_strong as to_hash_bucket_strong
from teletape.extras.text.ngrams import ngrams as ngrams
from teletape.extras.text.ngrams import unsorted_segment_join as unsorted_segment_join
from teletape.extras.text.ragged_strings import bytes_split as bytes_split
from teletape.extras.text.ragged_strings import split as split
from teletape.extras.text.ragged_strings import unicode_decode as unicode_decode
from teletape.extras.text.ragged_strings import unicode_decode_with_offsets as unicode_decode_with_offsets
from teletape.extras.text.ragged_strings import unicode_encode as unicode_encode
from teletape.extras.text.ragged_strings import unicode_split as unicode_split
from teletape.extras.text.ragged_strings import unicode_split_with_offsets as unicode_split_with_offsets
from teletape.extras.text.ragged_strings import unicode_transcode as unicode_transcode
from teletape.extras.text.strings import as_string as as_string
from teletape.extras.text.strings import format as format
from teletape.extras.text.strings import join as join
from teletape.extras.text.strings import length as length
from teletape.extras.text.strings import lower as lower
from teletape.extras.text.strings import reduce_join as reduce_join
from teletape.extras.text.strings import regex_full_match as regex_full_match
from teletape.extras.text.strings import regex_replace as regex_replace
from teletape.extras.text.strings import strip as strip
from teletape.extras.text.strings import substr as substr
from teletape.extras.text.strings import to_number as to_number
from teletape.extras.text.strings import upper as upper

__all__ = [
    "as_string",
    "bytes_split",
    "format",
    "join",
    "length",
    "lower",
    "ngrams",
    "reduce_join",
    "regex_full_match",
    "regex_replace",
    "split",
    "strip",
    "substr",
    "to_hash_bucket",
    "to_hash_bucket_fast",
    "to_hash_bucket_strong",
    "to_number",
    "unicode_decode",
    "unicode_decode_with_offsets",
    "unicode_encode",
    "unicode_split",
    "unicode_split_with_offsets",
    "unicode_transcode",
    "unsorted_segment_join",
    "upper",
]
