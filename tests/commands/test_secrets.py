"""Secrets of addresses are in nothing that decal prints, however an address is written and wherever it is given."""

import random
import string

import pytest

import decal_cli
from decal_cli.errors import masked
from tests.helpers.command import BINARY, Decal

SAID = ("--score", "p", "--label", "y")
SECRET = "Zq7Xv9"
ADDRESSES = (
    "postgresql://me:{}@127.0.0.1:1/db?table=a",
    "postgres://me:{}@127.0.0.1:1/db",
    "postgres:me:{}@127.0.0.1:1/db",
    "postgresql:/me:{}@127.0.0.1:1/db",
    "postgresql://:{}@127.0.0.1:1/db?table=a",
    "PostgreSQL://us/er:{}@127.0.0.1:1/db",
    "mysql://me:{}@127.0.0.1/db",
    "https://user:{}@127.0.0.1/rows.csv",
    "spark:sc://me:{}@127.0.0.1:1/?table=a",
    "s3://key:{}@bucket/rows.csv",
    "gs://key:{}@bucket/rows.csv",
    "abfs://key:{}@bucket/rows.csv",
    "duckdb:postgresql://me:{}@127.0.0.1:1/db?table=a",
)
AS_PARAMETER = (
    "postgresql://me@127.0.0.1:1/db?password={}&table=a",
    "postgresql://me@127.0.0.1:1/db?sslpassword={}&table=a",
    "spark:sc://127.0.0.1:1/;token={}?table=a",
    "https://127.0.0.1/rows.csv?X-Amz-Signature={}",
    "s3://bucket/rows.csv?secret_key={}",
    "host=127.0.0.1 port=1 password={}",
)
PLACES = (
    ("evaluate", "--engine", "{}", *SAID),
    ("evaluate", "{}", *SAID),
    ("evaluate", BINARY, "{}", *SAID),
    ("evaluate", BINARY, *SAID, "-o", "{}"),
    ("evaluate", BINARY, *SAID, "--utility", "{}"),
    ("evaluate", BINARY, "--score", "{}", "--label", "y"),
    ("evaluate", BINARY, *SAID, "--format", "{}"),
    ("gate", BINARY, *SAID, "--rule", "{}"),
    ("apply", "{}", BINARY, "-o", "out.csv"),
    ("{}",),
)
"""Where a user may give an address, by mistake or not."""


def passwords(seed: int) -> list[str]:
    """Secrets among signs that an address needs escaped."""
    draw = random.Random(seed)
    signs = "@@@:/?#%&;'\" \\[]()=.,$é" + string.ascii_letters + string.digits
    around = ["".join(draw.choices(signs, k=draw.randrange(5))) for _ in range(8)]
    return [*(f"{around[at]}{SECRET}{around[at + 1]}" for at in range(0, 8, 2)), SECRET * 15]


@pytest.mark.parametrize("place", PLACES, ids=lambda place: " ".join(map(str, place[:1] + place[-2:]))[:60])
def test_no_secret_is_printed(decal: Decal, place: tuple[str, ...]) -> None:
    filled = [(text, word) for seed, text in enumerate(ADDRESSES) for word in passwords(seed)]
    for text, secret in [*filled, *((text, f"a{SECRET}%20b") for text in AS_PARAMETER)]:
        address = text.replace("{}", secret)
        done = decal(*(str(word).replace("{}", address) for word in place))
        assert SECRET not in done.out + done.err, address
        assert done.code == 2 or text in AS_PARAMETER


def test_python_masks_as_the_command_line_does() -> None:
    for address in ADDRESSES:
        with pytest.raises(decal_cli.DecalError) as error:
            decal_cli.evaluate(address.replace("{}", f"a@{SECRET}/b"), score="p", label="y")
        assert SECRET not in str(error.value) + repr(error.value)


@pytest.mark.parametrize(
    "line",
    [
        "https://host:8080/x.csv cannot be read",
        "https://me:@host/x.csv has no password",
        "postgresql://me@host:5432/db: failed; see docs",
        "s3://bucket/a.csv, column 'e': 'a@b.org' is no number",
        "abfs://container@account.dfs.core.windows.net/rows: no such object",
        "rule 'auc@site=a:b' of site=a/key=b.csv: monkey=3",
    ],
)
def test_what_is_no_secret_stays(line: str) -> None:
    assert masked(line) == line


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("postgresql://me:pa@ss@host:5432/db: no table", "postgresql://me:***@host:5432/db: no table"),
        ("https://token@host/x.csv cannot be read", "https://***@host/x.csv cannot be read"),
        ("https://me:pa:ss@host/x.csv?token=abc&a=1", "https://me:***@host/x.csv?token=***&a=1"),
        ("abfs://me:@account/rows", "abfs://me:@account/rows"),
        ("a://u:p b://v:q@host c", "a://u:***@host c"),
    ],
)
def test_what_stands_around_a_secret_stays(line: str, shown: str) -> None:
    assert masked(line) == shown


def test_long_lines_are_masked_in_their_length() -> None:
    """Were it their square, this would take an hour."""
    for text in ("a:", "http:/", "a:/b:c ", "password=", "?key", "a", "@a:/b:"):
        masked(text * 200_000)
