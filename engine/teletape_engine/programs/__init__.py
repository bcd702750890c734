"""Programs: lists of commands kept as data, with loops, branches, batching and gradients."""
