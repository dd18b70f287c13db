import socket
from functools import partial

import pytest
from pydantic import BaseModel

from moeagent.memory.errors import ModelEndpointError
from moeagent.tools.llm.client import ATTEMPTS, ChatModel
from moeagent.tools.llm.parsing import UnusableAnswerError
from moeagent.tools.llm.perform import perform_completion
from moeagent.tools.llm.records import CallLimits, Endpoint, Message
from moeagent.tools.llm.scripted import HangUp, Raw, Reply, ScriptedEndpoint, Silence


class Form(BaseModel):
    name: str


GOOD = {"name": "a"}
ASK = [Message(role="user", content="Name?")]


def chat_of(base_url, *, deadline_s=5.0, limits=None, **prices):
    endpoint = Endpoint(base_url=base_url, model="m", deadline_s=deadline_s, **prices)
    return ChatModel(endpoint, limits or CallLimits(), partial(perform_completion, api_key="sk-secret"))


def test_a_good_answer_takes_the_strictest_format_and_is_counted():
    usage = {"prompt_tokens": 1000, "completion_tokens": 500}
    with ScriptedEndpoint([Reply(content='{"name": "a"}', usage=usage)]) as server:
        chat = chat_of(server.base_url, price_per_million_input=2.0, price_per_million_output=4.0)
        assert chat.ask(ASK, Form) == Form(name="a")
        before = chat.spent
        assert chat.ask(ASK, Form) == Form(name="a")
    assert chat.format == "json_schema"
    assert chat.spent.calls == 3
    assert chat.spent.tokens - before.tokens == 1500
    assert chat.spent.money - before.money == pytest.approx(0.004)
    assert server.requests[-1]["response_format"]["json_schema"]["name"] == "form"


@pytest.mark.parametrize("formats", [("json_object", "plain"), ("plain",)])
def test_an_endpoint_that_refuses_a_format_is_asked_for_the_next(formats):
    with ScriptedEndpoint([GOOD], formats=formats) as server:
        chat = chat_of(server.base_url)
        assert chat.ask(ASK, Form) == Form(name="a")
        assert chat.ask(ASK, Form) == Form(name="a")
    assert chat.format == formats[0]
    refused = 3 - len(formats)
    assert len(server.requests) == refused + 1 + 2


def test_an_endpoint_that_ignores_every_format_is_read_tolerantly():
    with ScriptedEndpoint(['Of course: {"name": "a"}.'], answers_probe=False) as server:
        chat = chat_of(server.base_url)
        assert chat.ask(ASK, Form) == Form(name="a")
    assert chat.format == "plain"


def test_the_newer_name_of_the_token_limit_is_learnt():
    complaint = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
    steps = [Raw(status=400, body=f'{{"error": {{"message": "{complaint}"}}}}'), {"ready": True}, GOOD]
    with ScriptedEndpoint(steps, answers_probe=False) as server:
        assert chat_of(server.base_url).ask(ASK, Form) == Form(name="a")
    assert "max_completion_tokens" in server.requests[-1]


def test_one_repair_turn_shows_the_model_what_was_wrong():
    with ScriptedEndpoint(['{"nom": "a"}', GOOD]) as server:
        assert chat_of(server.base_url).ask(ASK, Form) == Form(name="a")
    repair = server.requests[-1]["messages"]
    assert repair[-2] == {"role": "assistant", "content": '{"nom": "a"}'}
    assert "name: Field required" in repair[-1]["content"]


def test_a_second_unusable_answer_ends_the_attempt():
    with ScriptedEndpoint(["no idea"]) as server:
        with pytest.raises(UnusableAnswerError):
            chat_of(server.base_url).ask(ASK, Form)
        assert len(server.requests) == 3


def test_a_passing_fault_is_retried():
    steps = [Raw(status=503), HangUp(), {"ready": True}, GOOD]
    with ScriptedEndpoint(steps, answers_probe=False) as server:
        assert chat_of(server.base_url).ask(ASK, Form) == Form(name="a")


@pytest.mark.parametrize("step", [Raw(status=500), Raw(status=429), HangUp()])
def test_an_endpoint_that_is_down_costs_few_calls(step):
    with ScriptedEndpoint([step], answers_probe=False) as server:
        with pytest.raises(ModelEndpointError, match="did not answer"):
            chat_of(server.base_url).ask(ASK, Form)
        assert len(server.requests) == ATTEMPTS


def test_nothing_listening_is_named():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        with pytest.raises(ModelEndpointError, match="cannot reach"):
            chat_of(url).ask(ASK, Form)


@pytest.mark.parametrize("step", [Silence(), Silence(drip_every_s=0.05)])
def test_an_endpoint_that_never_ends_is_left_at_the_deadline(step):
    with ScriptedEndpoint([step], answers_probe=False) as server:
        with pytest.raises(ModelEndpointError, match="timeout"):
            chat_of(server.base_url, deadline_s=0.4).ask(ASK, Form)
        assert len(server.requests) == 1


@pytest.mark.parametrize(
    "body", ["", "<html>502</html>", "[]", '{"choices": []}', '{"choices": [{"message": 3}]}']
)
def test_a_body_that_is_no_completion_is_a_failure_of_the_endpoint(body):
    server = ScriptedEndpoint([Raw(body=body)], answers_probe=False)
    with server, pytest.raises(ModelEndpointError, match="malformed"):
        chat_of(server.base_url).ask(ASK, Form)


def test_a_body_without_end_is_cut():
    server = ScriptedEndpoint([Reply(content="x" * 5_000_000)], answers_probe=False)
    with server, pytest.raises(ModelEndpointError, match="longer than"):
        chat_of(server.base_url).ask(ASK, Form)


def test_the_key_never_shows_in_a_message():
    leak = '{"error": {"message": "invalid key sk-secret"}}'
    with ScriptedEndpoint([Raw(status=401, body=leak)], answers_probe=False) as server:
        with pytest.raises(ModelEndpointError) as error:
            chat_of(server.base_url).ask(ASK, Form)
        assert len(server.requests) == 1
    assert "sk-secret" not in str(error.value)
    assert "***" in str(error.value)


@pytest.mark.parametrize(
    ("limits", "told"),
    [
        (CallLimits(calls=2), "2 calls"),
        (CallLimits(tokens=30), "30 tokens"),
        (CallLimits(money=0.0), "0 money"),
        (CallLimits(wall_s=0.0), "0 seconds"),
    ],
)
def test_limits_hold_before_a_call(limits, told):
    usage = {"prompt_tokens": 20, "completion_tokens": 20}
    with ScriptedEndpoint([Reply(content='{"name": "a"}', usage=usage)]) as server:
        chat = chat_of(server.base_url, limits=limits)
        with pytest.raises(ModelEndpointError, match=told):
            [chat.ask(ASK, Form) for _ in range(5)]
        assert len(server.requests) <= 2


def test_a_completion_is_a_pure_record_that_replays():
    tape = []

    def recorded(request):
        tape.append((request, perform_completion(request, "sk-secret")))
        return tape[-1][1]

    with ScriptedEndpoint([GOOD]) as server:
        endpoint = Endpoint(base_url=server.base_url, model="m")
        first = ChatModel(endpoint, CallLimits(), recorded)
        answer = first.ask(ASK, Form)
    events = iter(tape)

    def replayed(request):
        wanted, response = next(events)
        assert request == wanted
        return response

    again = ChatModel(endpoint, CallLimits(), replayed)
    assert again.ask(ASK, Form) == answer
    assert again.spent == first.spent
    assert "sk-secret" not in str(tape)
