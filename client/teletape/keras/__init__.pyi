"""What `tf.keras` holds. Written by `make reference` from teletape.namespace."""

from keras._tf_keras.keras import *

from teletape.keras import activations as activations
from teletape.keras import applications as applications
from teletape.keras import backend as backend
from teletape.keras import callbacks as callbacks
from teletape.keras import config as config
from teletape.keras import constraints as constraints
from teletape.keras import datasets as datasets
from teletape.keras import distillation as distillation
from teletape.keras import distribution as distribution
from teletape.keras import dtype_policies as dtype_policies
from teletape.keras import export as export
from teletape.keras import initializers as initializers
from teletape.keras import layers as layers
from teletape.keras import legacy as legacy
from teletape.keras import losses as losses
from teletape.keras import metrics as metrics
from teletape.keras import mixed_precision as mixed_precision
from teletape.keras import models as models
from teletape.keras import ops as ops
from teletape.keras import optimizers as optimizers
from teletape.keras import preprocessing as preprocessing
from teletape.keras import quantizers as quantizers
from teletape.keras import random as random
from teletape.keras import regularizers as regularizers
from teletape.keras import saving as saving
from teletape.keras import tree as tree
from teletape.keras import utils as utils
from teletape.keras import visualization as visualization
from teletape.keras import wrappers as wrappers
