"""The names and types that the package shows; typed.py has what a type checker sees of them."""

import pytest

import decal_cli as decal
from tests.helpers.command import ROOT


def test_the_package_says_that_it_is_typed() -> None:
    assert (ROOT / "decal_cli" / "py.typed").exists()


def test_every_public_name_is_there() -> None:
    assert not [name for name in decal.__all__ if not hasattr(decal, name)]
    with pytest.raises(AttributeError, match="evalute"):
        decal.evalute  # noqa: B018
