"""Check whether a reply is well-formed XML.

This is stricter than the tolerant parser; both results are reported.
"""

from __future__ import annotations

from lxml import etree

_LIMIT = 1 << 20


def is_well_formed(text: str) -> bool:
    """Return whether the text, inside one root element, is well-formed XML. Never raises.

    Nothing is resolved or fetched: only the five entities of XML are allowed, no DTD and no network access.
    Texts longer than 2**20 characters count as not well-formed.

    >>> is_well_formed("<solution>4 &lt; 5</solution>"), is_well_formed("<solution>4 < 5</solution>")
    (True, False)
    """
    if len(text) > _LIMIT or "<!" in text or "<?" in text:
        return False
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
    try:
        etree.fromstring(f"<reply>{text}</reply>".encode(), parser)
    except (etree.XMLSyntaxError, ValueError):  # ValueError: NUL, lone surrogates
        return False
    return True
