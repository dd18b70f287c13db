"""Who may ask the web page, and how."""

import pytest
from parts.served import Served, served

from moeagent.agent.serve.guard import Door, is_loopback


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_only_reading_is_answered(site: Served, method: str) -> None:
    answer = site.get("/", method=method)
    assert answer.status == 405
    assert answer.headers["allow"] == "GET, HEAD"


def test_a_name_that_was_rebound_to_us_is_refused(site: Served) -> None:
    for name in ("evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "10.0.0.5"):
        assert site.get("/", Host=name).status == 421, name
    for name in ("localhost", "localhost:9000", "127.0.0.1:8390", "[::1]:8390"):
        assert site.get("/", Host=name).status == 200, name


def test_every_answer_carries_the_protecting_headers(site: Served) -> None:
    for path in ("/", "/runs/made", "/runs/nope", "/static/htmx.js", "/runs/made/report"):
        headers = site.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "script-src 'unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert "access-control-allow-origin" not in headers


def test_the_token_opens_by_address_cookie_or_header_and_nothing_else_does(shelf) -> None:
    with served(shelf, "--token") as site:
        assert site.token
        assert f"?token={site.token}" in site.address
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Cookie": f"moeagent_{site.port}=wrong"}):
            refused = site.get("/runs/made", **headers)
            assert refused.status == 401
            assert "moeagent serve" in refused.text
        assert site.get("/runs/made?token=wrong").status == 401
        assert site.get("/static/htmx.js").status == 401
        entered = site.get(f"/runs/made/log?q=oom&token={site.token}")
        assert entered.status == 303
        assert entered.headers["location"] == "/runs/made/log?q=oom"
        cookie = entered.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        assert site.get("/runs/made", Cookie=cookie.partition(";")[0]).status == 200
        assert site.get("/runs/made", Authorization=f"Bearer {site.token}").status == 200
        assert site.token not in site.get("/runs/made", Authorization=f"Bearer {site.token}").text


def test_the_redirect_after_the_token_stays_on_this_server(shelf) -> None:
    with served(shelf, "--token") as site:
        assert site.get(f"//evil.example/?token={site.token}").headers["location"].startswith("/evil.example")


def test_outside_loopback_there_is_always_a_token(shelf) -> None:
    with served(shelf, "--host", "0.0.0.0") as site:
        assert site.token
        assert site.get("/").status == 401
        assert site.get("/", Host="evil.example", Authorization=f"Bearer {site.token}").status == 421
        assert site.get("/", Host="192.0.2.7", Authorization=f"Bearer {site.token}").status == 200


def test_what_a_door_answers_to() -> None:
    near, far = Door("127.0.0.1", 1), Door("gpu1.lab", 1, "secret")
    assert near.answers_to("127.0.0.9")
    assert not near.answers_to("gpu1.lab")
    assert far.answers_to("GPU1.lab.")
    assert far.answers_to("10.0.0.5")
    assert not far.answers_to("gpu1.lab.evil.example")
    assert is_loopback("::1")
    assert not is_loopback("0.0.0.0")
    assert not is_loopback("localhost.evil.example")
