"""The loop against searches at equal launches: a small sample always, the whole table with --full."""

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from contest_table import by_family, close, crashed, false_gains, launches_to_95, ratio, run, run_all, table

RIVALS = ("tpe", "tpe+preflight", "random", "random+preflight", "grid", "coordinate")
GP = ("gp", "gp+preflight") if find_spec("torch") else ()


@pytest.mark.timeout(180)
def test_the_playbook_beats_tpe_on_a_sample() -> None:
    found = run_all(("playbook", "tpe", "tpe+preflight"), worlds=4, seed=0)
    print("\n" + table(found))
    best_rival = max(ratio(found["tpe"]), ratio(found["tpe+preflight"]))
    assert ratio(found["playbook"]) >= best_rival + 0.1
    assert crashed(found["playbook"]) <= crashed(found["tpe"]) / 2


@pytest.mark.timeout(120)
def test_no_gain_is_claimed_in_a_few_placebo_worlds() -> None:
    assert false_gains(run("playbook", 4, 0, "--placebo")) == 0


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_the_whole_table(full: bool) -> None:
    if not full:
        pytest.skip("40 worlds and eight policies: --full, or `make bench`")
    found = run_all(("playbook", *RIVALS, *GP), worlds=40, seed=0)
    placebo = run("playbook", 200, 0, "--placebo")
    mine = found["playbook"]
    tpe = min(launches_to_95(found[name]) for name in ("tpe", "tpe+preflight"))
    random = min(launches_to_95(found[name]) for name in ("random", "random+preflight"))
    crashes = min(crashed(found[name]) for name in ("tpe", "tpe+preflight"))
    claimed = false_gains(placebo) / len(placebo)
    print("\n" + table(found))
    print("\nthe playbook by family\n" + table(by_family([*mine, *placebo])))
    print(f"asked: median >= 0.970, reached {ratio(mine):.3f}")
    print(f"asked: >= 0.95 in 90 % of the worlds, reached {close(mine):.0%}")
    print(f"asked: launches to 95 % <= half of TPE's {tpe:.1f}, reached {launches_to_95(mine):.1f}")
    print(f"asked: launches to 95 % <= a third of random's {random:.1f}, reached {launches_to_95(mine):.1f}")
    print(f"asked: crashed <= a quarter of TPE's {crashes}, reached {crashed(mine)}")
    print(f"asked: no gain claimed in 98 % of {len(placebo)} placebo worlds, reached {1 - claimed:.1%}")
    assert claimed <= 0.02
    assert ratio(mine) >= 0.97
    assert close(mine) >= 0.9
    assert launches_to_95(mine) <= min(tpe / 2, random / 3)
    assert crashed(mine) <= crashes / 4
