"""A session of the test's own."""

import os

import pytest

from teletape_engine.plans.policy import POLICY
from teletape_engine.session.session import Session

POLICY.use(os.environ.get("TELETAPE_PLANS"), threads=None)  # as the SDK does


@pytest.fixture
def session() -> Session:
    return Session()
