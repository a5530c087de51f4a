"""Long proofs: what the tests show in short, over many rounds, with figures."""
