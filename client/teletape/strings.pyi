"""What `tf.strings` holds. Written by `make reference` from teletape.namespace."""

from teletape.files.buckets import to_hash_bucket as to_hash_bucket
from teletape.files.buckets import to_hash_bucket_fast as to_hash_bucket_fast
from teletape.files.buckets import to_hash_bucket_strong as to_hash_bucket_strong
from teletape.files.ngrams import ngrams as ngrams
from teletape.files.ngrams import unsorted_segment_join as unsorted_segment_join
from teletape.files.ragged_strings import bytes_split as bytes_split
from teletape.files.ragged_strings import split as split
from teletape.files.ragged_strings import unicode_decode as unicode_decode
from teletape.files.ragged_strings import unicode_decode_with_offsets as unicode_decode_with_offsets
from teletape.files.ragged_strings import unicode_encode as unicode_encode
from teletape.files.ragged_strings import unicode_split as unicode_split
from teletape.files.ragged_strings import unicode_split_with_offsets as unicode_split_with_offsets
from teletape.files.ragged_strings import unicode_transcode as unicode_transcode
from teletape.files.strings import as_string as as_string
from teletape.files.strings import format as format
from teletape.files.strings import join as join
from teletape.files.strings import length as length
from teletape.files.strings import lower as lower
from teletape.files.strings import reduce_join as reduce_join
from teletape.files.strings import regex_full_match as regex_full_match
from teletape.files.strings import regex_replace as regex_replace
from teletape.files.strings import strip as strip
from teletape.files.strings import substr as substr
from teletape.files.strings import to_number as to_number
from teletape.files.strings import upper as upper

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
