"""Tables of many columns in a terminal of 100: nothing is cut off."""

from rich.console import Console

from debate_rl.commands import ladder


def test_no_rung_and_no_interval_of_the_ladder_is_cut_off(monkeypatch, capsys):
    monkeypatch.setattr(ladder, "wide_console", lambda width: Console(width=100))
    cells = (".75 of 1,281.7", "+.23 (-.04 to +.50)") * 2
    ladder.print_table(ladder.EQUAL, [("self_correction", *cells)], "compared with self-consistency")
    said = capsys.readouterr().out
    assert max(map(len, said.splitlines())) <= 100
    assert "self_correction" in said
    assert "…" not in said
    assert said.count("(-.04") == said.count("+.50)") == 3
