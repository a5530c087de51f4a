"""Faults injected into real keepers: what must hold when storage fails or the keeper dies."""

import pytest

pytest.register_assert_rewrite("tests.faults.disks", "tests.faults.injectors", "tests.faults.kept")
