from moeagent.tools.load.gpu_state import parse_gpu_state, summary, throttled

TEXT = """0, 2325, 3090, 71, 587.12, 0x0000000000000004
1, 1200, 3090, 93, 401.55, 0x0000000000000060
2, [N/A], [N/A], 45, [N/A], [N/A]
No devices were found
"""


def test_clocks_heat_and_slowdowns_are_read() -> None:
    states = parse_gpu_state(TEXT)

    assert [s.gpu for s in states] == [0, 1, 2]
    assert states[0].slowdowns == ()
    assert states[2].sm_mhz is None
    assert throttled(states) == "GPU 1: software thermal slowdown, hardware thermal slowdown"
    assert summary(states) == "SM clock 1200 to 2325 MHz, 45 to 93 C"


def test_the_power_cap_alone_is_normal_work_and_no_gpu_is_no_complaint() -> None:
    assert throttled(parse_gpu_state(TEXT.splitlines()[0])) == ""
    assert (throttled(()), summary(())) == ("", "")
