"""Programs that will not die, and the proof that a keeper ends them all."""
