"""The elements of datasets: their structures, leaves and specs, and functions of them."""
