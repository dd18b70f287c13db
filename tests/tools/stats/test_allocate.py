from moeagent.memory.records import Effect
from moeagent.tools.stats.allocate import OpenIdea, next_step, upper_bound
from moeagent.tools.stats.assess import Assessment


def _idea(name, log_ratio, launches, need="candidate", pursue=False):
    effect = Effect(concurrency=None, effect=log_ratio, low=-1, high=1, launches=launches)
    return OpenIdea(
        idea=name,
        assessment=Assessment(
            verdict=None, need=need, pursue=pursue, goal_effect=effect,
            log_ratio=log_ratio, launches=launches, reason="",
        ),
    )  # fmt: skip


def _step(ideas, fresh=None, more=False, left=20, reserve=6):
    return next_step(ideas, fresh=fresh, more_ideas=more, noise_sd=0.05, launches_left=left, reserve=reserve)


def test_every_idea_gets_its_first_launch_before_any_gets_a_second():
    assert _step([_idea("H1", 0.04, (3, 1))], fresh="H1", more=True).kind == "propose"


def test_a_promising_idea_is_followed_up_at_once():
    step = _step([_idea("H1", 0.4, (3, 1), pursue=True)], fresh="H1", more=True)
    assert (step.kind, step.idea) == ("launch-idea", "H1")


def test_the_highest_upper_bound_is_launched_again():
    ideas = [_idea("H1", 0.03, (3, 9)), _idea("H2", 0.02, (3, 1)), _idea("H3", -0.2, (3, 1))]
    step = _step(ideas)
    assert (step.kind, step.idea) == ("launch-idea", "H2")
    assert upper_bound(ideas[1].assessment, 0.05) > upper_bound(ideas[0].assessment, 0.05)


def test_the_incumbent_keeps_pace_with_the_leader():
    step = _step([_idea("H1", 0.05, (3, 4), need="incumbent")])
    assert (step.kind, step.idea) == ("launch-incumbent", "H1")


def test_the_reserve_is_not_touched():
    assert _step([_idea("H1", 0.05, (3, 4))], left=6).kind == "finish"
    assert _step([], more=True, left=6).kind == "finish"


def test_without_open_ideas_it_ends():
    assert _step([]).kind == "finish"


def test_an_idea_without_measurement_comes_first():
    new = OpenIdea(idea="H9", assessment=Assessment(verdict=None, need="candidate", reason=""))
    assert _step([_idea("H1", 0.05, (3, 4)), new]).idea == "H9"
