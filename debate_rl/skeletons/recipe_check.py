from debate_rl import train

SMALL = {"train.steps": 1, "train.batch_size": 2, "held_out.every": 0, "held_out.limit": 2}
UNTRAINED = {"warm_start.solve_steps": 0, "warm_start.debate_steps": 0}


def test_it_trains_for_a_step(tmp_path):
    run = train("skeleton.toml", {**SMALL, **UNTRAINED, "run.dir": tmp_path / "run"})
    assert run.count() == 2 * 4
