"""What `tf.io.gfile` holds. Written by `make reference` from scripts/public_surface.py."""

from teletape.tf.files.gfile import GFile as GFile
from teletape.tf.files.gfile import copy as copy
from teletape.tf.files.gfile import exists as exists
from teletape.tf.files.gfile import get_registered_schemes as get_registered_schemes
from teletape.tf.files.gfile import glob as glob
from teletape.tf.files.gfile import isdir as isdir
from teletape.tf.files.gfile import join as join
from teletape.tf.files.gfile import listdir as listdir
from teletape.tf.files.gfile import makedirs as makedirs
from teletape.tf.files.gfile import mkdir as mkdir
from teletape.tf.files.gfile import remove as remove
from teletape.tf.files.gfile import rename as rename
from teletape.tf.files.gfile import rmtree as rmtree
from teletape.tf.files.gfile import stat as stat
from teletape.tf.files.gfile import walk as walk

__all__ = [
    "GFile",
    "copy",
    "exists",
    "get_registered_schemes",
    "glob",
    "isdir",
    "join",
    "listdir",
    "makedirs",
    "mkdir",
    "remove",
    "rename",
    "rmtree",
    "stat",
    "walk",
]
