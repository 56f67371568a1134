"""What is known of samples: two independent parts of them, in whitened coordinates."""

from quartic.evidence.parts import Evidence

__all__ = ["Evidence"]
