"""What the playbook proposes, the installed engine's own rules accept."""

import pytest

from moeagent.agent.proposers.book import load_book
from moeagent.agent.proposers.playbook import Playbook
from moeagent.memory.records import EngineFacts, Goal
from moeagent.tools.engines.catalogue import catalogue
from moeagent.tools.engines.validate import validate_config


def facts_of(engine, version):
    known = catalogue(engine)
    nearest = known.nearest_version(version)
    return EngineFacts(
        engine=engine,
        version=version,
        knobs=tuple(entry.knob(nearest) for entry in known.flags),
        source="catalogue",
    )


@pytest.mark.parametrize("engine", ["sglang", "vllm", "llamacpp"])
def test_every_flag_of_the_book_is_in_the_catalogue(engine):
    known = catalogue(engine)
    missing = {
        f
        for f in load_book(engine).flags()
        if not (known.entry(f) or known.entry(f.replace("--no-", "--", 1)))
    }
    assert missing == set()


@pytest.mark.parametrize(
    ("fixture", "engine", "version"),
    [
        ("sm120_view", "sglang", "0.5.8"),
        ("sm120_view", "sglang", "0.5.9"),
        ("sm120_view", "sglang", "0.5.23"),
        ("h200_view", "vllm", "0.16.0"),
        ("h200_view", "vllm", "0.33.0"),
        ("llamacpp_view", "llamacpp", "b9000"),
    ],
)
@pytest.mark.parametrize("goal", ["max-throughput", "min-latency"])
def test_no_candidate_is_refused(fixture, engine, version, goal, request):
    update = {"engine": facts_of(engine, version), "goal": Goal(name=goal)}
    view = request.getfixturevalue(fixture).model_copy(update=update)
    ranking = Playbook().ranking(view)
    refused = {}
    for ranked in ranking:
        config = view.incumbent.apply(ranked.candidate.change)
        problems = [p.message for p in validate_config(config, view.engine) if p.fatal]
        if problems:
            refused[ranked.candidate.move] = problems
    assert refused == {}
    assert len(ranking) >= 8
