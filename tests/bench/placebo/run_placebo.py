"""How often a campaign claims a gain that is not there, and finds one that is.

    python tests/bench/placebo/run_placebo.py --campaigns 400

Every campaign is the loop's own judge and allocation of launches, in virtual time. Prints both rates with
their exact (Clopper-Pearson) 95 % intervals, and exits non-zero when a rate misses what is asked.
"""

import argparse
import math
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

from placebo_campaign import Campaign
from placebo_server import PlaceboMachine

from moeagent.memory.records import Goal
from moeagent.tools.stats.boundary import Plan

IDEAS = 10
GAIN = 0.05
LARGEST_FALSE_RATE = 0.01
SMALLEST_FOUND_RATE = 0.95


@dataclass(frozen=True)
class Setting:
    """One design of a campaign."""

    launches: int
    repeats: int
    min_effect: float = 0.02


@dataclass(frozen=True)
class Ending:
    """What one campaign said."""

    claims: tuple[int, ...]
    confirmation: str
    headline: float | None
    launches: int


def play(setting: Setting, planted: int | None, seed: int) -> Ending:
    """One campaign; with `planted` that idea has a true gain, otherwise none has."""
    effects = {} if planted is None else {f"--idea-{planted}": math.log1p(GAIN)}
    machine = PlaceboMachine(seed=seed, budget=setting.launches, repeats=setting.repeats, planted=effects)
    plan = Plan(ideas=IDEAS, launches=setting.launches)
    campaign = Campaign(machine, plan, Goal(min_effect=setting.min_effect)).run()
    found = campaign.confirmation
    return Ending(
        claims=tuple(campaign.claims),
        confirmation=found.status if found else "",
        headline=found.headline.effect if found and found.headline else None,
        launches=machine.launched,
    )


def placebo(setting: Setting, seed: int) -> Ending:
    """No idea does anything."""
    return play(setting, None, seed)


def planted(setting: Setting, seed: int) -> Ending:
    """One of the ideas is true."""
    return play(setting, seed % IDEAS, seed)


def claims_falsely(ending: Ending) -> bool:
    """A campaign on a placebo that called anything improved."""
    return bool(ending.claims)


def finds(seed: int, ending: Ending) -> bool:
    """The planted idea was called improved, nothing else was, and the confirmation did not refute it."""
    return ending.claims == (seed % IDEAS,) and ending.confirmation != "refuted"


def rate(hits: int, of: int) -> str:
    """In per cent with the exact interval."""
    from scipy.stats import binomtest

    low, high = binomtest(hits, of).proportion_ci(0.95, method="exact")
    return f"{hits} of {of} = {hits / of:.2%} (95 % interval {low:.2%} to {high:.2%})"


def main() -> int:
    """Both experiments, printed."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--campaigns", type=int, default=400)
    options.add_argument("--launches", type=int, default=200)
    options.add_argument("--repeats", type=int, default=3, help="measurements of a rung within a launch")
    options.add_argument("--first-seed", type=int, default=0)
    options.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    chosen = options.parse_args()
    setting = Setting(chosen.launches, chosen.repeats)
    seeds = range(chosen.first_seed, chosen.first_seed + chosen.campaigns)
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    with ProcessPoolExecutor(chosen.jobs) as pool:
        without = list(pool.map(partial(placebo, setting), seeds, chunksize=4))
        with_gain = list(pool.map(partial(planted, setting), seeds, chunksize=4))
    false = sum(map(claims_falsely, without))
    found = sum(map(finds, seeds, with_gain))
    shown = [e.headline for e in with_gain if e.headline is not None]
    print(
        f"budget {setting.launches} launches, {setting.repeats} measurements of a rung in each, {IDEAS} ideas"
    )
    print(f"placebo campaigns that claim a gain:     {rate(false, len(without))}")
    print(f"planted gain of {GAIN:.0%} found:              {rate(found, len(with_gain))}")
    if shown:
        print(f"headline shown in {len(shown)} of them, mean {sum(shown) / len(shown):+.1%}")
    good = false / len(without) <= LARGEST_FALSE_RATE and found / len(with_gain) >= SMALLEST_FOUND_RATE
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
