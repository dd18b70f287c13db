"""The capture of CUDA graphs: where memory runs out last, and where kernels run for the first time."""

from moeagent.tools.sim.script import Script, check_crashes, check_rules, run_out_of_memory

CAPTURE_ONE_S, COMPILE_ONE_S = 4.0, 12.0
MIN_CAPTURE_GIB = 0.1
"""What must stay free for the capture to succeed."""


def capture_sizes(largest: int) -> list[int]:
    """Batch sizes that the engine captures up to the largest."""
    sizes = [1, 2, 4, 8, 12, *range(16, 257, 8), *range(272, 513, 16), *range(544, 4097, 32)]
    return [bs for bs in sizes if bs <= largest] or [largest]


def capture(script: Script) -> None:
    """CUDA graphs of the decode batches."""
    plan, settings = script.plan, script.settings
    if settings.graph_bs == 0:
        check_rules(script, "capture")
        check_crashes(script)
        return
    begin = (
        f"Capture cuda graph begin. This can take up to several minutes. avail mem={plan.after_pool:.2f} GB"
    )
    script.ranks_say(begin)
    sizes = capture_sizes(settings.graph_bs)
    script.first_says(f"Capture cuda graph bs {sizes}")
    script.wait(3.0)
    check_rules(script, "capture")
    check_crashes(script)
    began = script.now
    _capture_each(script, sizes)
    script.ranks_say(
        f"Capture cuda graph end. Time elapsed: {script.now - began:.2f} s. mem usage={plan.graphs:.2f} GB. "
        f"avail mem={plan.after_capture:.2f} GB."
    )
    if settings.speculative:
        _capture_draft(script)


def _capture_each(script: Script, sizes: list[int]) -> None:
    plan, began = script.plan, script.now
    each = COMPILE_ONE_S if script.settings.args["enable_torch_compile"] else CAPTURE_ONE_S
    fails = plan.after_capture < MIN_CAPTURE_GIB
    for index, bs in enumerate(reversed(sizes)):
        share = index / len(sizes)
        left = plan.after_pool - plan.graphs * share
        spent = int(script.now - began)
        if index % 8 == 0:
            script.say(
                f"Capturing batches (bs={bs} avail_mem={max(left, 0.01):.2f} GB): "
                f"{share:4.0%}|{'█' * int(share * 10):<10}| "
                f"{index}/{len(sizes)} [{spent // 60:02d}:{spent % 60:02d}<00:40,  "
                f"{each:.2f}s/it]",
                None,
            )
        if fails and index == len(sizes) // 2:
            run_out_of_memory(script, "capture", "capture-oom", wanted=0.62, free=0.2)
        script.wait(each)


def _capture_draft(script: Script) -> None:
    left = f"avail mem={script.plan.after_capture:.2f} GB"
    script.first_says(f"Capture draft cuda graph begin. This can take up to several minutes. {left}")
    script.wait(20.0)
    script.first_says(f"Capture draft cuda graph end. Time elapsed: 20.00 s. mem usage=0.00 GB. {left}.")


def piecewise(script: Script) -> None:
    """Piecewise graphs of the prefill."""
    if not script.settings.args["enable_piecewise_cuda_graph"]:
        return
    if any(rule.stage == "piecewise" and rule.notice for rule in script.settings.rules):
        return
    script.ranks_say(f"Capture piecewise CUDA graph begin. avail mem={script.plan.after_capture:.2f} GB")
    script.first_says("Compiling num tokens (num_tokens=4096)")
    script.wait(25.0)
    check_rules(script, "piecewise")
    script.wait(60.0)
    script.ranks_say(
        "Capture piecewise CUDA graph end. Time elapsed: 85.00 s. mem usage=0.00 GB. avail "
        f"mem={script.plan.after_capture:.2f} GB."
    )
