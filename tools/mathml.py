"""Turn the TeX in documentation pages into MathML when the site is built.

Arithmatex marks `$x$` and `$$x$$` as elements of class `arithmatex` and leaves the rendering to
a script in the reader's browser. Browsers show MathML by themselves, so converting here means
that a page loads no script and no font for its formulas.
"""

import html
import re

from latex2mathml.converter import convert
from mkdocs.exceptions import PluginError

_INLINE = re.compile(r'<span class="arithmatex">\\\((.*?)\\\)</span>', re.DOTALL)
_BLOCK = re.compile(r'<div class="arithmatex">\s*\\\[(.*?)\\\]\s*</div>', re.DOTALL)

_NOT_CONVERTED = re.compile(r">(&|\\\w+)<")  # what the converter does not know, it copies


def on_page_content(content: str, **_) -> str:
    """MkDocs calls this with the HTML of each page's body."""
    content = _INLINE.sub(lambda found: _mathml(found[1], "inline"), content)
    return _BLOCK.sub(lambda found: _mathml(found[1], "block"), content)


def _mathml(tex: str, display: str) -> str:
    mathml = convert(html.unescape(tex).strip(), display=display)
    if unknown := _NOT_CONVERTED.search(mathml):
        raise PluginError(
            f"cannot turn {unknown[1]!r} into MathML in this formula "
            f"(for aligned lines, write align* and not aligned): {tex.strip()}"
        )
    return mathml
