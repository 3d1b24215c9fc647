"""Schemathesis generates valid and invalid requests: no response is a server error, and all match the document."""

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.schemas import BaseSchema
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    ignored_auth,
    response_schema_conformance,
    status_code_conformance,
)

from cloakwork.collect.api import event_streams
from cloakwork.collect.attack import Attack, AttackCache
from cloakwork.collect.storage import DeviceReport, ProblemCount, Reading
from tests.collect.api_kit import NOW, Bench, bench, result
from tests.waiting import PATIENCE

EXAMPLES = 5  # of each operation, good and bad
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with pytest.MonkeyPatch.context() as patch, bench(tmp_path_factory.mktemp("schema")) as one:
        patch.setattr(event_streams, "STREAM_S", 0.01)
        attacked = Attack(**vars(result()), frames=1, readings=4, since=NOW)
        patch.setattr(AttackCache, "attack_until", lambda *_, **__: attacked)  # it takes seconds
        one.store.readings.add([Reading("hall", f"s{k}", 1, NOW, 7, NOW) for k in range(1, 5)])
        one.store.results.save([result()])
        one.store.reports.add([DeviceReport("hall", "s1", "online", 3, 30, NOW)])
        one.store.problems.add([ProblemCount("hall", "s1", "late: stored after its frame was due", 2, NOW)])
        yield one


@pytest.fixture(scope="module")
def document(made: Bench) -> BaseSchema:
    return schemathesis.openapi.from_asgi("/openapi.json", made.app, headers=made.bearer("operator"))


unhurried = settings(
    max_examples=EXAMPLES, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), database=None
)
# nothing can be wrong in a request that says nothing
BARE = {"/v1/sites", "/v1/tokens", "/v1/session", "/healthz", "/metrics"}


def operations(document: BaseSchema) -> Iterator[Any]:
    """Every operation of the document."""
    for found in document.get_all_operations():
        assert isinstance(found, Ok)
        yield found.ok()


def try_out(operation: Any, who: dict[str, str], mode: GenerationMode) -> None:
    """Send requests of one kind, and check the responses."""

    @given(case=operation.as_strategy(generation_mode=mode))
    @unhurried
    def attempt(case: Case[Any]) -> None:
        if "site" in case.path_parameters and mode is GenerationMode.POSITIVE:
            case.path_parameters["site"] = "hall"  # others are not found, which shows little
        case.call_and_validate(headers=who, checks=CHECKS, timeout=PATIENCE)

    attempt()


@pytest.mark.parametrize("mode", list(GenerationMode))
def test_no_request_causes_a_server_error(made: Bench, document: BaseSchema, mode: GenerationMode) -> None:
    tried = 0
    for operation in operations(document):
        if mode is GenerationMode.POSITIVE or operation.path not in BARE or operation.method == "post":
            try_out(operation, made.bearer("device" if operation.path == "/v1/readings" else "operator"), mode)
            tried += 1
    assert tried >= 14


def test_every_route_requires_its_token(made: Bench, document: BaseSchema) -> None:
    who = made.bearer("operator")
    for operation in operations(document):

        @given(case=operation.as_strategy())
        @settings(unhurried, max_examples=2)
        def attempt(case: Case[Any]) -> None:
            case.call_and_validate(headers=who, checks=[ignored_auth], timeout=PATIENCE)

        attempt()
