"""A Postgres server, where one is installed."""

from collections.abc import Iterator

import pytest

from tests.helpers.server import Server, programs, running


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    folder = programs()
    if folder is None:
        pytest.skip("no Postgres is installed (apt-get install postgresql)")
    with running(folder) as started:
        yield started
