"""What `tf.lookup` holds. Written by `make reference` from scripts/public_surface.py."""

from teletape.lookup import experimental as experimental

from teletape.extras.lookup_tables.entries import KeyValueTensorInitializer as KeyValueTensorInitializer
from teletape.extras.lookup_tables.entries import TextFileIndex as TextFileIndex
from teletape.extras.lookup_tables.entries import TextFileInitializer as TextFileInitializer
from teletape.extras.lookup_tables.static import StaticHashTable as StaticHashTable
from teletape.extras.lookup_tables.vocabulary import StaticVocabularyTable as StaticVocabularyTable

__all__ = [
    "KeyValueTensorInitializer",
    "StaticHashTable",
    "StaticVocabularyTable",
    "TextFileIndex",
    "TextFileInitializer",
    "experimental",
]
