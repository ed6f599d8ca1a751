"""What an agent reads in its turn, and how that is made.

``prompt`` says it from top to bottom. It uses ``seating`` (personas, handles, order), ``shown``
(which turns are shown, what of them, which of them are compared), ``rendering`` (the pieces as text),
``fitting`` (what is cut in a small context), ``texts`` (the prompt files) and ``escape``. ``reading`` is
the way back: what a prompt shows. ``rebuilding`` makes the prompts of a stored debate again.
"""
