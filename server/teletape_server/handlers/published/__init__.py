"""Methods about published functions: they prepare, load and call them."""
