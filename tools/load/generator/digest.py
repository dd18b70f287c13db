"""One request as it is kept, and whether it counts as complete."""

from __future__ import annotations

from array import array

from moeagent.tools.load.generator.driver import Driver
from moeagent.tools.load.generator.events import Reading, read_answer, read_cumulative
from moeagent.tools.load.generator.request import Answer, Job, Request


def judge_head(request: Request) -> None:
    """Failures that the status line and content type show."""
    body = b"".join(request.chunks)[request.body_at :]
    shown = " ".join(body[:400].decode("utf-8", "replace").split())[:300]
    if not request.status:
        request.fail("disconnected", "no answer")
    elif request.status != 200:
        request.fail(f"http_{request.status}", shown)
    elif "html" in request.content_type or body[:200].lstrip().lower().startswith((b"<!doctype", b"<html")):
        request.fail("html", shown)
    elif "json" in request.content_type:
        request.fail("not_stream", f"one {request.content_type} body instead of events")


def judge_answer(request: Request, reading: Reading, job: Job) -> None:
    """A request counts as complete only when nothing at all is missing."""
    out = reading.usage.get("out")
    if reading.error:
        request.fail("in_stream_error", reading.error[:300])
    elif reading.finish.startswith(("abort", "error")):
        request.fail("in_stream_error", reading.finish[:300])
    elif not reading.clean:
        request.fail("truncated", f"body ends after {reading.events} events")
    elif not reading.events:
        request.fail("not_stream", f"no event in a {request.content_type or 'typeless'} body")
    elif not reading.finish:
        request.fail("truncated", "no finish_reason")
    elif not reading.stamps:
        request.fail("empty", "no text")
    elif out is None and not job.get("keep_text"):
        request.fail("uncounted", "the server sends no usage record; give a tokenizer")
    elif out is not None:
        judge_count(request, out, job)


def judge_count(request: Request, out: int, job: Job) -> None:
    """The number of tokens against the number asked for."""
    if out > request.asked:
        request.fail("wrong_count", f"{out} tokens where {request.asked} were asked for")
    elif job["exact"] and out < request.asked:
        request.fail("early_stop", f"{out} of {request.asked} tokens")


def digest(request: Request, job: Job, start: int, full: bool) -> Answer:
    """One request as it is kept: microseconds after `start`, gaps between events with text, tokens in each.

    i, slot, fresh (connection opened for it), due (null in closed loop), send, end, asked, http, kind (empty
    when complete), detail, out, prompt, cached, finish, gaps (the first one is TTFT), tokens (null: unknown,
    one value per gap otherwise), crowded (events with text that shared a read with an earlier one), text
    (with keep_text).
    """
    judge_head(request)
    cumulative = bool(job.get("cumulative"))
    reading = Reading()
    if request.status == 200 and request.failure not in ("html", "not_stream"):
        reading = read_cumulative(request) if cumulative else read_answer(request, full)
        judge_answer(request, reading, job)
    stamps, gaps, last = reading.stamps, [], request.sent
    for stamp in stamps:
        gaps.append((stamp - last) // 1000)
        last += gaps[-1] * 1000
    answer = {
        "i": request.index, "slot": request.slot, "fresh": request.fresh,
        "due": (request.due - start) // 1000 if request.due else None,
        "send": (request.sent - start) // 1000, "end": (max(request.end, request.sent) - start) // 1000,
        "asked": request.asked, "http": request.status,
        "kind": request.failure, "detail": masked(request.detail, job),
        "out": reading.usage.get("out"), "prompt": reading.usage.get("prompt"),
        "cached": reading.usage.get("cached"), "finish": reading.finish, "gaps": gaps,
        "tokens": reading.tokens if any(reading.tokens) else None,
        "crowded": sum(n - 1 for n in reading.per_read.values()),
    }  # fmt: skip
    if job.get("keep_text"):
        answer["text"] = "".join(reading.texts[-1:] if job.get("repeats") else reading.texts)
    return answer


def masked(text: str, job: Job) -> str:
    """A server's message without the token that it may have echoed."""
    token = job.get("headers", {}).get("Authorization", "").rpartition(" ")[2]
    return text.replace(token, "***") if token else text


def digest_all(driver: Driver, requests: list[Request], start: int) -> list[Answer]:
    """Digests of all requests; the fast path is used while it agrees with a full parse of the first ones."""
    job, answers = driver.job, []
    full = bool(job.get("keep_text"))
    for position, request in enumerate(requests):
        driver.restore(request)
        if position < 16 and not full and not job.get("cumulative") and request.status == 200:
            quick, whole = read_answer(request, False), read_answer(request, True)
            full = quick.stamps != whole.stamps or quick.finish != whole.finish
        answers.append(digest(request, job, start, full))
        request.chunks, request.stamps = [], array("q")
    return answers
