"""The proof on samples: from candidates and evidence to certificates, and to reasons where there is none."""

from quartic.certify.beyond import Spans
from quartic.certify.doubts import Basis, Doubt, Reason
from quartic.certify.proof import Candidates, Proof, barred, certify

__all__ = ["Basis", "Candidates", "Doubt", "Proof", "Reason", "Spans", "barred", "certify"]
