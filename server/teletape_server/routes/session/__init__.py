"""A session, also one for a request alone: values by id, ops and their catalogue, batches, the owner's sessions."""
