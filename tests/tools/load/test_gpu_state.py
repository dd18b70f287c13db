from moeagent.tools.load.gpu_state import parse_gpu_states, queries, throttle_reasons

TEXT = """\
2026/11/29 23:14:08.250, 0, 587.12, 2325, 12481, 98, 92011, 71, 0x0000000000000004
2026/11/29 23:14:08.251, 1, 401.55, 1200, 12481, 99, 92011, 93, 0x0000000000000060
2026/11/29 23:14:08.252, 2, [N/A], [N/A], [N/A], [N/A], 4, 45, [N/A]
29.11.2026 23:14, 3, 1, 2, 3, 4, 5, 6, 0x0
Field "clocks_throttle_reasons.active" is not a valid field to query.
No devices were found
"""


def test_power_clocks_heat_and_slowdowns_are_read() -> None:
    states = parse_gpu_states(TEXT)

    assert [s.gpu for s in states] == [0, 1, 2]
    assert states[0].at_s == 1795994048.25
    assert (states[0].watts, states[0].sm_mhz, states[0].use_percent) == (587.12, 2325, 98)
    assert states[0].reasons == ("power cap",)
    assert states[1].reasons == ("software thermal slowdown", "hardware thermal slowdown")
    assert (states[2].watts, states[2].memory_mib, states[2].reasons) == (None, 4, None)


def test_the_power_cap_is_normal_work_and_no_bit_is_named_twice() -> None:
    reasons = throttle_reasons()

    assert [reason.name for reason in reasons if not reason.spoils] == ["power cap"]
    assert len({reason.bit for reason in reasons}) == len(reasons)


def test_both_names_of_the_reasons_are_asked_for() -> None:
    assert [query.rpartition(",")[2] for query in queries()] == [
        "clocks_throttle_reasons.active",
        "clocks_event_reasons.active",
    ]
