"""What tests of the shipped broker share: one that runs, for each file of tests."""

from collections.abc import Iterator

import pytest

from tests.deploy.installation import Site, running_site


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with running_site(tmp_path_factory.mktemp("installation")) as one:
        yield one
