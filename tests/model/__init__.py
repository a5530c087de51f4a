"""Laws of the values and pure functions, over generated inputs."""
