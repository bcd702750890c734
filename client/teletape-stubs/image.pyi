"""What `tf.image` holds. Written by `make reference` from scripts/public_surface.py."""

from teletape._generated.images.color import hsv_to_rgb as hsv_to_rgb
from teletape._generated.images.color import rgb_to_hsv as rgb_to_hsv
from teletape._generated.images.color import rgb_to_yiq as rgb_to_yiq
from teletape._generated.images.color import rgb_to_yuv as rgb_to_yuv
from teletape._generated.images.color import yiq_to_rgb as yiq_to_rgb
from teletape._generated.images.color import yuv_to_rgb as yuv_to_rgb
from teletape._generated.images.quality import sobel_edges as sobel_edges
from teletape._generated.images.quality import total_variation as total_variation
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
from teletape.tf.files.jpeg_quality import adjust_jpeg_quality as adjust_jpeg_quality
from teletape.tf.files.jpeg_quality import random_jpeg_quality as random_jpeg_quality
from teletape.tf.files.jpeg_quality import stateless_random_jpeg_quality as stateless_random_jpeg_quality
from teletape.tf.ops.images.boxes import combined_non_max_suppression as combined_non_max_suppression
from teletape.tf.ops.images.boxes import crop_and_resize as crop_and_resize
from teletape.tf.ops.images.boxes import draw_bounding_boxes as draw_bounding_boxes
from teletape.tf.ops.images.boxes import extract_glimpse as extract_glimpse
from teletape.tf.ops.images.boxes import non_max_suppression as non_max_suppression
from teletape.tf.ops.images.boxes import non_max_suppression_overlaps as non_max_suppression_overlaps
from teletape.tf.ops.images.boxes import non_max_suppression_padded as non_max_suppression_padded
from teletape.tf.ops.images.boxes import non_max_suppression_with_scores as non_max_suppression_with_scores
from teletape.tf.ops.images.colors import adjust_brightness as adjust_brightness
from teletape.tf.ops.images.colors import adjust_contrast as adjust_contrast
from teletape.tf.ops.images.colors import adjust_gamma as adjust_gamma
from teletape.tf.ops.images.colors import adjust_hue as adjust_hue
from teletape.tf.ops.images.colors import adjust_saturation as adjust_saturation
from teletape.tf.ops.images.colors import convert_image_dtype as convert_image_dtype
from teletape.tf.ops.images.colors import per_image_standardization as per_image_standardization
from teletape.tf.ops.images.colors import rgb_to_grayscale as rgb_to_grayscale
from teletape.tf.ops.images.measures import psnr as psnr
from teletape.tf.ops.images.measures import ssim as ssim
from teletape.tf.ops.images.measures import ssim_multiscale as ssim_multiscale
from teletape.tf.ops.images.random_boxes import sample_distorted_bounding_box as sample_distorted_bounding_box
from teletape.tf.ops.images.random_boxes import (
    stateless_sample_distorted_bounding_box as stateless_sample_distorted_bounding_box,
)
from teletape.tf.ops.images.random_changes import random_brightness as random_brightness
from teletape.tf.ops.images.random_changes import random_contrast as random_contrast
from teletape.tf.ops.images.random_changes import random_crop as random_crop
from teletape.tf.ops.images.random_changes import random_flip_left_right as random_flip_left_right
from teletape.tf.ops.images.random_changes import random_flip_up_down as random_flip_up_down
from teletape.tf.ops.images.random_changes import random_hue as random_hue
from teletape.tf.ops.images.random_changes import random_saturation as random_saturation
from teletape.tf.ops.images.random_changes import stateless_random_brightness as stateless_random_brightness
from teletape.tf.ops.images.random_changes import stateless_random_contrast as stateless_random_contrast
from teletape.tf.ops.images.random_changes import stateless_random_crop as stateless_random_crop
from teletape.tf.ops.images.random_changes import stateless_random_flip_left_right as stateless_random_flip_left_right
from teletape.tf.ops.images.random_changes import stateless_random_flip_up_down as stateless_random_flip_up_down
from teletape.tf.ops.images.random_changes import stateless_random_hue as stateless_random_hue
from teletape.tf.ops.images.random_changes import stateless_random_saturation as stateless_random_saturation
from teletape.tf.ops.images.sizes import ResizeMethod as ResizeMethod
from teletape.tf.ops.images.sizes import central_crop as central_crop
from teletape.tf.ops.images.sizes import crop_to_bounding_box as crop_to_bounding_box
from teletape.tf.ops.images.sizes import extract_patches as extract_patches
from teletape.tf.ops.images.sizes import flip_left_right as flip_left_right
from teletape.tf.ops.images.sizes import flip_up_down as flip_up_down
from teletape.tf.ops.images.sizes import grayscale_to_rgb as grayscale_to_rgb
from teletape.tf.ops.images.sizes import image_gradients as image_gradients
from teletape.tf.ops.images.sizes import pad_to_bounding_box as pad_to_bounding_box
from teletape.tf.ops.images.sizes import resize as resize
from teletape.tf.ops.images.sizes import resize_with_crop_or_pad as resize_with_crop_or_pad
from teletape.tf.ops.images.sizes import resize_with_pad as resize_with_pad
from teletape.tf.ops.images.sizes import rot90 as rot90
from teletape.tf.ops.images.sizes import transpose as transpose

__all__ = [
    "ResizeMethod",
    "adjust_brightness",
    "adjust_contrast",
    "adjust_gamma",
    "adjust_hue",
    "adjust_jpeg_quality",
    "adjust_saturation",
    "central_crop",
    "combined_non_max_suppression",
    "convert_image_dtype",
    "crop_and_resize",
    "crop_to_bounding_box",
    "decode_and_crop_jpeg",
    "decode_bmp",
    "decode_gif",
    "decode_image",
    "decode_jpeg",
    "decode_png",
    "decode_webp",
    "draw_bounding_boxes",
    "encode_jpeg",
    "encode_png",
    "extract_glimpse",
    "extract_jpeg_shape",
    "extract_patches",
    "flip_left_right",
    "flip_up_down",
    "grayscale_to_rgb",
    "hsv_to_rgb",
    "image_gradients",
    "is_jpeg",
    "non_max_suppression",
    "non_max_suppression_overlaps",
    "non_max_suppression_padded",
    "non_max_suppression_with_scores",
    "pad_to_bounding_box",
    "per_image_standardization",
    "psnr",
    "random_brightness",
    "random_contrast",
    "random_crop",
    "random_flip_left_right",
    "random_flip_up_down",
    "random_hue",
    "random_jpeg_quality",
    "random_saturation",
    "resize",
    "resize_with_crop_or_pad",
    "resize_with_pad",
    "rgb_to_grayscale",
    "rgb_to_hsv",
    "rgb_to_yiq",
    "rgb_to_yuv",
    "rot90",
    "sample_distorted_bounding_box",
    "sobel_edges",
    "ssim",
    "ssim_multiscale",
    "stateless_random_brightness",
    "stateless_random_contrast",
    "stateless_random_crop",
    "stateless_random_flip_left_right",
    "stateless_random_flip_up_down",
    "stateless_random_hue",
    "stateless_random_jpeg_quality",
    "stateless_random_saturation",
    "stateless_sample_distorted_bounding_box",
    "total_variation",
    "transpose",
    "yiq_to_rgb",
    "yuv_to_rgb",
]
