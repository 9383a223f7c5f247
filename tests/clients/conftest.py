"""Fixtures: gateways to test against, official clients that talk to them, texts to send."""

from __future__ import annotations

import os

import anthropic
import pytest
from gateway_process import Gateway, models_folder

GEMMA_FILE = "gemma-3-270m-q4_k_m.gguf"
DEFAULT_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"

# The client sends version 2026-10-21, under which the API has no temperature. Requests that need
# temperature 0 ask for the version before it.
WITH_TEMPERATURE = {"anthropic-version": "2023-06-01"}


def pytest_configure():
    """No proxy, key or address from the caller's environment takes part in these tests."""
    for name in list(os.environ):
        if name.startswith("ANTHROPIC_") or name.lower().endswith("_proxy"):
            del os.environ[name]


def need_model(file_name: str) -> None:
    path = models_folder() / file_name
    if not path.exists():
        pytest.fail(f"{path} is missing; `./incipit test` downloads it")


@pytest.fixture
def gateway_factory():
    started: list[Gateway] = []

    def start(*arguments: str) -> Gateway:
        started.append(Gateway(*arguments))
        return started[-1]

    yield start
    for gateway in started:
        gateway.stop()


@pytest.fixture(scope="session")
def tiny():
    """The random model: quick, 32k context, takes tools, says nothing sensible."""
    with Gateway("--model", "tiny") as gateway:
        yield gateway


@pytest.fixture(scope="session")
def default_model():
    need_model(DEFAULT_FILE)
    with Gateway("--model", "default") as gateway:
        yield gateway


@pytest.fixture(scope="session")
def gemma():
    need_model(GEMMA_FILE)
    with Gateway("--model", "gemma3-270m") as gateway:
        yield gateway


def client_of(gateway: Gateway, **options) -> anthropic.Anthropic:
    options = {"api_key": "any", "max_retries": 0, "timeout": 120, **options}
    return anthropic.Anthropic(base_url=gateway.base_url, **options)


@pytest.fixture
def tiny_client(tiny):
    with client_of(tiny) as client:
        yield client


@pytest.fixture
def default_client(default_model):
    with client_of(default_model) as client:
        yield client
