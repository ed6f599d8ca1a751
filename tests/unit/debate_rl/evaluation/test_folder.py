import shutil

import pytest

from debate_rl.evaluation.folder import IDENTITY, training_folder


def test_an_evaluation_that_was_half_removed_is_made_again(tmp_path, monkeypatch):
    def hold():
        with training_folder(tmp_path, 5, "", {}) as folder:
            for part in ("debates", "opening"):
                (folder / part).mkdir(exist_ok=True)
        return folder

    folder, once = hold(), shutil.rmtree

    def killed(path, *rest):
        once(path, *rest)
        raise KeyboardInterrupt

    monkeypatch.setattr(shutil, "rmtree", killed)
    with pytest.raises(KeyboardInterrupt):
        hold()
    monkeypatch.undo()
    assert (folder / IDENTITY).is_file()
    assert hold() == folder
    assert sorted(path.name for path in folder.iterdir()) == [".lock", "debates", IDENTITY, "opening"]
