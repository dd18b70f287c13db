"""`moeagent worlds`: any policy on any worlds, launch for launch, in virtual time."""

from typing import TYPE_CHECKING, Annotated

import typer

from moeagent.agent.cli.options import AsJson

if TYPE_CHECKING:
    from collections.abc import Iterable

    from moeagent.tools.sim.worlds import BenchWorld

PolicyName = Annotated[
    str,
    typer.Option(
        "--policy",
        help="playbook, model:URL, random, grid, coordinate, tpe or gp; a search with +preflight stands "
        "behind the loop's own checks.",
    ),
]
Count = Annotated[int, typer.Option("--worlds", min=1, help="How many worlds.")]
Seed = Annotated[int, typer.Option(min=0, help="Draws the worlds and a search's random numbers.")]
Launches = Annotated[int, typer.Option(min=1, help="Launches per world, repeats included.")]
OwnWorld = Annotated[
    str | None,
    typer.Option("--world", help="Your own worlds: module.py:factory, a function of a seed. See docs."),
]
Placebo = Annotated[bool, typer.Option("--placebo", help="Worlds in which nothing helps.")]


def command(
    policy: PolicyName = "playbook",
    worlds: Count = 8,
    seed: Seed = 0,
    launches: Launches = 12,
    world: OwnWorld = None,
    placebo: Placebo = False,
    as_json: AsJson = False,
) -> None:
    """Run a policy on simulated worlds, or on your own, and compare it with each world's best configuration.

    Reports per world: value of the configuration returned over the oracle's, launches to 95 % of the oracle,
    crashed launches, virtual GPU-hours, and gains claimed that are false or true.

    Example: moeagent worlds --policy tpe+preflight --worlds 8 --seed 1 --launches 12
    """
    from moeagent.agent.cli.worlds_output import Output
    from moeagent.agent.worlds.contest import contest
    from moeagent.agent.worlds.policies import policy_by_name

    output = Output(as_json=as_json)
    report = contest(
        policy_by_name(policy), _worlds(worlds, seed, world, placebo), seed=seed, launches=launches,
        on_result=output.world,
    )  # fmt: skip
    output.finish(report)


def _worlds(count: int, seed: int, own: str | None, placebo: bool) -> "Iterable[BenchWorld]":
    from moeagent.agent.worlds.guard import guarded_world, load_factory
    from moeagent.tools.sim.families import draw_worlds, placebo_worlds

    if own is not None:
        factory = load_factory(own)
        return (guarded_world(factory, seed * 1000 + number) for number in range(count))
    return placebo_worlds(count, seed) if placebo else draw_worlds(count, seed)
