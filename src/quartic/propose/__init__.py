"""Ways to find candidates; what they are worth is not said here, but by the proof."""
