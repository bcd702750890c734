"""What `tf.io` holds. Written by `make reference` from scripts/public_surface.py."""

from teletape.io import gfile as gfile

from teletape.extras.record_features import FixedLenFeature as FixedLenFeature
from teletape.extras.record_features import FixedLenSequenceFeature as FixedLenSequenceFeature
from teletape.extras.record_features import VarLenFeature as VarLenFeature
from teletape.extras.record_features import parse_example as parse_example
from teletape.extras.record_features import parse_single_example as parse_single_example
from teletape.tf.files.contents import decode_base64 as decode_base64
from teletape.tf.files.contents import decode_compressed as decode_compressed
from teletape.tf.files.contents import decode_csv as decode_csv
from teletape.tf.files.contents import decode_raw as decode_raw
from teletape.tf.files.contents import encode_base64 as encode_base64
from teletape.tf.files.contents import matching_files as matching_files
from teletape.tf.files.contents import read_file as read_file
from teletape.tf.files.contents import write_file as write_file
from teletape.tf.files.images import decode_and_crop_jpeg as decode_and_crop_jpeg
from teletape.tf.files.images import decode_bmp as decode_bmp
from teletape.tf.files.images import decode_gif as decode_gif
from teletape.tf.files.images import decode_image as decode_image
from teletape.tf.files.images import decode_jpeg as decode_jpeg
from teletape.tf.files.images import decode_png as decode_png
from teletape.tf.files.images import decode_webp as decode_webp
from teletape.tf.files.images import encode_jpeg as encode_jpeg
from teletape.tf.files.images import encode_png as encode_png
from teletape.tf.files.images import extract_jpeg_shape as extract_jpeg_shape
from teletape.tf.files.images import is_jpeg as is_jpeg
from teletape.tf.files.record_files import TFRecordOptions as TFRecordOptions
from teletape.tf.files.record_files import TFRecordWriter as TFRecordWriter
from teletape.tf.files.tensor_messages import parse_tensor as parse_tensor
from teletape.tf.files.tensor_messages import serialize_tensor as serialize_tensor

__all__ = [
    "FixedLenFeature",
    "FixedLenSequenceFeature",
    "TFRecordOptions",
    "TFRecordWriter",
    "VarLenFeature",
    "decode_and_crop_jpeg",
    "decode_base64",
    "decode_bmp",
    "decode_compressed",
    "decode_csv",
    "decode_gif",
    "decode_image",
    "decode_jpeg",
    "decode_png",
    "decode_raw",
    "decode_webp",
    "encode_base64",
    "encode_jpeg",
    "encode_png",
    "extract_jpeg_shape",
    "gfile",
    "is_jpeg",
    "matching_files",
    "parse_example",
    "parse_single_example",
    "parse_tensor",
    "read_file",
    "serialize_tensor",
    "write_file",
]
