"""The figures of docs/judging.md as a report shows them: findings, tables, charts, runs side by side."""
