"""The prompts that agents read, and how they are built.

``prompt`` builds a prompt from top to bottom. It uses ``seating`` (personas, handles, order), ``shown``
(which turns are shown, which parts of them, and which are compared), ``rendering`` (the pieces as text),
``fitting`` (what is cut in a small context), ``texts`` (the prompt files) and ``escape``. ``reading`` does
the reverse: it parses a rendered prompt. ``rebuilding`` rebuilds the prompts of a stored debate.
"""
