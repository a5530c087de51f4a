"""A part of the matrix of `python -m prove gate_matrix`: each right head gets in over TCP, and no other (6.6)."""

import pytest

from prove import gate_matrix


@pytest.mark.requirement("6.6", "9.tcp", "F65", "F66")
def test_each_right_head_gets_in_and_no_other() -> None:
    """Injector: heads wrong in one way or several, drawn from the whole matrix; wrong tokens in masses."""
    assert " 0 others did " in gate_matrix.prove(400)
