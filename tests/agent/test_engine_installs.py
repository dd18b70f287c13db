"""Two installs of an engine in Python, each asked for its own flags once per version, and checked by them."""

from pathlib import Path

import pytest
from parts.python_engine import imports, installed

from moeagent.agent.events import Events
from moeagent.agent.interrupt import StopRequest
from moeagent.agent.own_ideas import change_of, with_installs
from moeagent.agent.predictor import CampaignPredictor
from moeagent.agent.preflight import Known, refusals
from moeagent.agent.settings import CampaignSettings, OwnIdea
from moeagent.agent.steps.survey import _result
from moeagent.agent.workbench import Workbench
from moeagent.memory.errors import InputError
from moeagent.memory.ledger import Ledger
from moeagent.memory.records import HostFacts, ServerConfig
from moeagent.tools.engines.protocol import EngineInstall
from moeagent.tools.engines.registry import engine_by_name


def survey(root: Path, own: EngineInstall, further: EngineInstall):
    """One run's survey, as its workbench performs it."""
    engine = {"name": "sglang", "command": own.command, "env": own.env, "install": [further]}
    settings = CampaignSettings(
        model=str(root / "model"), host={"target": "local", "folder": str(root)}, engine=engine
    )
    bench = Workbench(settings, "run", root, Events(), StopRequest(), None)
    try:
        return bench.survey()
    finally:
        bench.close()


def facts(outputs, install: EngineInstall):
    results = {name: _result(output) for name, output in outputs.items()}
    return engine_by_name("sglang").facts(results, install)


@pytest.fixture
def old(tmp_path):
    return installed(tmp_path / "old", "0.5.9", "--old-flag")


@pytest.fixture
def new(tmp_path):
    return installed(tmp_path / "new", "0.6.0", "--new-flag")


def test_a_second_run_does_not_import_the_parser_again(tmp_path, old, new):
    first, second = survey(tmp_path, old, new), survey(tmp_path, old, new)
    assert imports(tmp_path / "old") == imports(tmp_path / "new") == 1
    assert first["outputs"]["engine-parser"] == second["outputs"]["engine-parser"]
    (tmp_path / "old/sglang-0.5.9.dist-info/METADATA").write_text(
        "Metadata-Version: 2.1\nName: sglang\nVersion: 0.5.9.post1\n"
    )
    survey(tmp_path, old, new)
    assert imports(tmp_path / "old") == 2


def test_each_install_is_checked_by_its_own_flags(tmp_path, old, new):
    recorded = survey(tmp_path, old, new)
    further = recorded["further"]["new"]
    known = Known(
        facts(recorded["outputs"], old),
        HostFacts(name="local", machine_id="x"),
        CampaignPredictor(CampaignSettings().workload, Ledger()),
        further={"new": facts(further["outputs"], EngineInstall.model_validate(further["install"]))},
    )
    assert known.engine.version == "0.5.9"
    assert known.further["new"].version == "0.6.0"

    def problems(flag: str, install: str) -> list[str]:
        return refusals(ServerConfig(engine="sglang", flags={flag: 2}, install=install), known)

    assert problems("--old-flag", "default") == problems("--new-flag", "new") == []
    assert "no flag --new-flag" in problems("--new-flag", "default")[0]
    assert "no flag --old-flag" in problems("--old-flag", "new")[0]
    assert "does not answer in the install gone" in problems("--tp-size", "gone")[0]


def test_listed_installs_become_ideas_behind_the_engineers_own(old, new):
    own = OwnIdea(flags={"--tp-size": 2})
    ideas = with_installs((own,), (old, new))
    assert [change_of(idea).install for idea in ideas] == [None, "old", "new"]
    named = OwnIdea(flags={"--tp-size": 2}, install="new")
    assert [change_of(idea).install for idea in with_installs((named,), (old, new))] == ["new", "old"]
    with pytest.raises(InputError, match="'nightly'"):
        with_installs((OwnIdea(install="nightly"),), (old,))
