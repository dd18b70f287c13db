import pytest

from moeagent.agent.proposers.own_ideas import OwnIdeasFirst, parse_ideas, read_ideas
from moeagent.agent.proposers.playbook import Playbook
from moeagent.agent.proposers.view import Rejection
from moeagent.memory.errors import InputError
from moeagent.memory.records import VerdictKind

FILE = """
[[idea]]
statement = "Sixteen slots"
set = ["-np=16", "--ctx-size 8192"]

[[idea]]
statement = "No repacking"
reason = "small batches"
set = ["--no-repack"]
predicted = [{ concurrency = 32, effect = 0.1, low = 0.0, high = 0.2 }]
"""


def proposer(text=FILE):
    playbook = Playbook()
    return OwnIdeasFirst(parse_ideas(text, "mine.toml"), playbook, playbook)


def test_own_ideas_come_first_in_order_and_once(llamacpp_view, play):
    own, view, drafts = proposer(), llamacpp_view, []
    for _ in range(3):
        drafts.append(own.propose(view))
        view = play(view, drafts[-1], 0.0, VerdictKind.NEUTRAL)
    assert [d.source for d in drafts] == ["user", "user", "playbook"]
    assert drafts[0].change.set_flags == {"-np": 16, "-c": 8192}
    assert [p.concurrency for p in drafts[0].predicted] == [1, 8, 32]
    assert drafts[1].predicted[0].effect == 0.1


def test_an_own_idea_that_was_turned_down_does_not_come_again(llamacpp_view):
    own = proposer()
    refused = Rejection(change=own.propose(llamacpp_view).change, reason="does not fit")
    assert (
        own.propose(llamacpp_view.model_copy(update={"rejections": (refused,)})).statement == "No repacking"
    )


@pytest.mark.parametrize(
    "text", ["", "[[idea]]", '[[idea]]\nstatement = "s"\nsett = []', "[[idea", '[[idea]]\nstatement = ""']
)
def test_a_faulty_file_is_named(text):
    with pytest.raises(InputError, match=r"mine\.toml"):
        parse_ideas(text, "mine.toml")


def test_an_idea_that_cannot_be_read_is_named(llamacpp_view):
    own = proposer('[[idea]]\nstatement = "odd"\nset = [" =1"]')
    with pytest.raises(InputError, match=r"idea 1 \(odd\)"):
        own.propose(llamacpp_view)


def test_a_file_that_is_not_there_is_an_input_error(tmp_path):
    with pytest.raises(InputError, match="cannot read"):
        read_ideas(tmp_path / "none.toml")
