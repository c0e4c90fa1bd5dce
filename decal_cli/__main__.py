"""`python -m decal_cli`, and the `decal` command."""

import sys


def main() -> None:
    """Run the command line and exit with its code."""
    from decal_cli.commands.app import run

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
