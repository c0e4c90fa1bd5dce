"""`python -m decal_cli`, and the `decal` command."""

import gc
import os
import sys


def main() -> None:
    """Run the command line and exit with its code."""
    try:
        # Whatever is imported outside of this is not guarded against Ctrl-C.
        import signal

        # A shell that starts a run in the background leaves Ctrl-C ignored.
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, _end)
        # Modules are never garbage: a tenth of a short run would go into looking for some. Commands turn it on again.
        gc.disable()
        from decal_cli.commands.app import run

        code = run(sys.argv[1:])
        # From here on there is nothing left to interrupt.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    except KeyboardInterrupt:
        print("decal: interrupted", file=sys.stderr)
        code = 130
    except MemoryError:
        # While modules were being imported; a run has a line of its own for it.
        os.write(2, b"decal: there is not enough memory; give it more\n")
        code = 2
    sys.exit(code)


def _end(number: int, frame: object) -> None:
    """End at once where nothing is being written.

    A KeyboardInterrupt may be raised anywhere: in the middle of an import, whose lock then stays closed for the other
    threads, or in a callback, where Python prints it and goes on.
    """
    try:
        # Whoever shows progress has hidden the cursor.
        os.write(2, (b"\r\x1b[K\x1b[?25h" if os.isatty(2) else b"") + b"decal: interrupted\n")
    finally:
        os._exit(130)


if __name__ == "__main__":
    main()
