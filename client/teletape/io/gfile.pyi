"""What `tf.io.gfile` holds. Written by `make reference` from scripts/public_surface.py."""

from teletape.files.gfile import GFile as GFile
from teletape.files.gfile import copy as copy
from teletape.files.gfile import exists as exists
from teletape.files.gfile import get_registered_schemes as get_registered_schemes
from teletape.files.gfile import glob as glob
from teletape.files.gfile import isdir as isdir
from teletape.files.gfile import join as join
from teletape.files.gfile import listdir as listdir
from teletape.files.gfile import makedirs as makedirs
from teletape.files.gfile import mkdir as mkdir
from teletape.files.gfile import remove as remove
from teletape.files.gfile import rename as rename
from teletape.files.gfile import rmtree as rmtree
from teletape.files.gfile import stat as stat
from teletape.files.gfile import walk as walk

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
