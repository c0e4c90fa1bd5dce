"""`python -m decal_cli`, and the `decal` command."""

import sys


def main() -> None:
    """Run the command line and exit with its code."""
    try:
        # Whatever is imported outside of this is not guarded against Ctrl-C.
        import signal

        from decal_cli.commands.app import run

        code = run(sys.argv[1:])
        # From here on there is nothing left to interrupt.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    except KeyboardInterrupt:
        print("decal: interrupted", file=sys.stderr)
        code = 130
    sys.exit(code)


if __name__ == "__main__":
    main()
