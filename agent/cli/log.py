"""`moeagent log`."""

from typing import TYPE_CHECKING, Annotated

import typer

from moeagent.agent.cli.options import DEFAULT_RUNS, AsJson, RunName, RunsRoot

if TYPE_CHECKING:
    from moeagent.memory.review import Review
    from moeagent.memory.run_view import RunView


def command(
    run: RunName,
    hypothesis: Annotated[str, typer.Argument(metavar="[ID]", help="One hypothesis whole, such as H3.")] = "",
    verdict: Annotated[str, typer.Option(help="Only hypotheses with this verdict.")] = "",
    flag: Annotated[str, typer.Option(help="Only hypotheses that touch this flag or variable.")] = "",
    last: Annotated[
        int, typer.Option(min=0, help="Rows of the table: only the last so many hypotheses; 0 for all.")
    ] = 50,
    md: Annotated[bool, typer.Option("--md", help="Print the hypotheses as Markdown.")] = False,
    as_json: AsJson = False,
    runs: RunsRoot = DEFAULT_RUNS,
) -> None:
    """The hypothesis log of a run: what, why, predicted, measured, verdict.

    Example: moeagent log last --verdict blocked
    """
    from moeagent.agent.show.filters import keep_last, keep_only
    from moeagent.agent.show.text import console
    from moeagent.memory.review import read_reviews
    from moeagent.memory.run_folder import find_run
    from moeagent.memory.run_view import RunView

    folder = find_run(runs, run)
    if last and not (as_json or md or hypothesis or verdict or flag):
        _print_table(*RunView.read_last(folder, last), read_reviews(folder))
        return
    view = keep_only(RunView.read(folder), verdict=verdict, flag=flag)
    if as_json:
        from moeagent.agent.show.as_json import print_json
        from moeagent.agent.show.in_force import log_json

        reviews = [review.model_dump(mode="json") for review in read_reviews(folder)]
        print_json({**log_json(view), "reviews": reviews})
    elif md:
        from moeagent.agent.show.report import log_markdown

        typer.echo(log_markdown(view, read_reviews(folder)), nl=False)
    elif hypothesis:
        from moeagent.agent.show.one_hypothesis import print_hypothesis

        print_hypothesis(view, hypothesis, console(), read_reviews(folder))
    else:
        _print_table(view, keep_last(view, last) if last else 0, read_reviews(folder))


def _print_table(view: "RunView", left_out: int, reviews: "tuple[Review, ...]") -> None:
    from moeagent.agent.show.log import print_log
    from moeagent.agent.show.text import console
    from moeagent.memory.collector import collector_paused

    with collector_paused():
        print_log(view, console(), reviews)
    if left_out:
        typer.echo(f"{left_out} earlier hypotheses are not shown: --last 0 shows all")
