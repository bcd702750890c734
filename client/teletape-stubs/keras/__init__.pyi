"""What `tf.keras` holds. Written by `make reference` from scripts/public_surface.py."""

from keras._tf_keras.keras import *
from keras._tf_keras.keras import activations as activations
from keras._tf_keras.keras import applications as applications
from keras._tf_keras.keras import backend as backend
from keras._tf_keras.keras import callbacks as callbacks
from keras._tf_keras.keras import config as config
from keras._tf_keras.keras import constraints as constraints
from keras._tf_keras.keras import datasets as datasets
from keras._tf_keras.keras import distillation as distillation
from keras._tf_keras.keras import distribution as distribution
from keras._tf_keras.keras import dtype_policies as dtype_policies
from keras._tf_keras.keras import export as export
from keras._tf_keras.keras import initializers as initializers
from keras._tf_keras.keras import layers as layers
from keras._tf_keras.keras import legacy as legacy
from keras._tf_keras.keras import losses as losses
from keras._tf_keras.keras import metrics as metrics
from keras._tf_keras.keras import mixed_precision as mixed_precision
from keras._tf_keras.keras import models as models
from keras._tf_keras.keras import ops as ops
from keras._tf_keras.keras import optimizers as optimizers
from keras._tf_keras.keras import preprocessing as preprocessing
from keras._tf_keras.keras import quantizers as quantizers
from keras._tf_keras.keras import random as random
from keras._tf_keras.keras import regularizers as regularizers
from keras._tf_keras.keras import saving as saving
from keras._tf_keras.keras import tree as tree
from keras._tf_keras.keras import utils as utils
from keras._tf_keras.keras import visualization as visualization
from keras._tf_keras.keras import wrappers as wrappers
