"""Screens: what a person would see of a terminal, had by replaying what its programs said."""
