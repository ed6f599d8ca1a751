"""Reports as files: one HTML file that needs nothing else, Markdown, and JSON.

jinja2 and matplotlib (extra ``report``) are imported when a page is made.
"""

from debate_rl.reports.document import Links
from debate_rl.reports.rendering.html import as_html, refuse_missing
from debate_rl.reports.rendering.json import as_json
from debate_rl.reports.rendering.markdown import as_markdown

__all__ = ["Links", "as_html", "as_json", "as_markdown", "refuse_missing"]
