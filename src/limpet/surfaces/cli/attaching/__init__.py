"""A person's own terminal, attached to a run's."""
