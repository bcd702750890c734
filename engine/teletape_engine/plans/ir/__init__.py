"""What plans are made of: buffers and views of them, instructions, and where buffers lie in memory."""
