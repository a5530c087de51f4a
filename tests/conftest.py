"""What holds for every test: where LIMPET_NO_SKIPS is 1, a skip is a failure that names its reason."""

from __future__ import annotations

import os
from collections.abc import Generator
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, settings

# A law holds or does not: how long a busy machine took to draw its examples says nothing of it.
settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)


def refuse_skip(report: Report) -> Report:
    """Turns a skip into a failure; an expected failure is reported as skipped too, and stays as it is."""
    if os.environ.get("LIMPET_NO_SKIPS") == "1" and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        report.outcome = "failed"
        report.longrepr = f"LIMPET_NO_SKIPS: no test may be skipped here, and this one was. {reason}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    return refuse_skip((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    return refuse_skip((yield))
