"""Results as Python shows them: sentences that name options name keywords instead."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from decal_cli.api.words import in_python
from decal_cli.render.blocks import Block, Conclusion, Folded, Notes, Paragraph, Steps


class InPython:
    """A result whose sentences are in Python's words; all else, also its data and rows, is as it was."""

    def __init__(self, result: Any) -> None:
        self._result = result

    def __getattr__(self, name: str) -> Any:
        return getattr(self._result, name)

    def blocks(self) -> Iterator[Block]:
        """The blocks of the result."""
        return map(_in_python, self._result.blocks())


def _in_python(block: Block) -> Block:
    match block:
        case Paragraph():
            return replace(block, text=in_python(block.text))
        case Notes(copy=False):
            return replace(block, lines=tuple(map(in_python, block.lines)))
        case Steps():
            return replace(block, items=tuple(replace(step, reason=in_python(step.reason)) for step in block.items))
        case Conclusion():
            sentences = tuple(map(in_python, block.sentences))
            return replace(block, text=in_python(block.text), sentences=sentences)
        case Folded():
            return replace(block, blocks=tuple(map(_in_python, block.blocks)))
    return block
