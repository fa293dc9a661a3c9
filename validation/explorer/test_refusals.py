"""Who gets no answer from the page, and what the command says where it cannot show one."""

import socket

import pytest
from command_line import failure
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

import btqueue as bt
from btqueue.cli import explore as command
from btqueue.explorer.messages import scenario_of
from btqueue.explorer.server import NO_TOKEN, Explorer

BASE, TALK = "http://127.0.0.1:8765", "ws://127.0.0.1:8765/talk"
PATHS = ["/", "/explorer.js", "/explorer.css"]


@pytest.fixture
def stranger():
    explorer = Explorer(bt.load("venugopal-2006/piconet"), "secret")
    return TestClient(explorer.app, BASE, follow_redirects=False)


@pytest.fixture
def owner(stranger):
    client = TestClient(stranger.app, BASE)
    assert client.get("/?token=secret").status_code == 200
    return client


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("query", ["", "?token=", "?token=wrong", "?token=s%C3%A9cret"])
def test_without_the_token_nothing_is_told(stranger, path, query):
    answer = stranger.get(path + query)
    assert (answer.status_code, answer.text) == (403, NO_TOKEN)
    assert "set-cookie" not in answer.headers


def test_the_token_leaves_the_address_and_becomes_a_cookie_that_scripts_cannot_read(stranger):
    answer = stranger.get("/?token=secret")
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith("btqueue-8765=secret;")
    assert "HttpOnly" in cookie and "SameSite=strict" in cookie
    assert stranger.get("/").status_code == 200


def test_the_page_may_fetch_nothing_from_elsewhere(owner):
    for path in PATHS:
        answer = owner.get(path)
        assert answer.headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'")
        text = answer.text.replace("http://www.w3.org/2000/svg", "")  # a name, which nobody fetches
        assert "http://" not in text and "https://" not in text


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8765", "127.0.0.1.evil.example", "[", ""])
def test_another_host_name_is_refused_with_the_right_token_too(owner, host):
    answer = owner.get("/?token=secret", headers={"host": host})
    assert (answer.status_code, answer.text) == (400, "Invalid host header")


def test_no_file_can_be_had(owner):
    for path in ("/../pyproject.toml", "/etc/passwd", "/page/index.html", "/server.py"):
        assert owner.get(path).status_code == 404


def test_only_the_page_itself_may_talk(owner, stranger):
    for client, origin in ((owner, "http://evil.example"), (owner, ""), (stranger, BASE)):
        with pytest.raises(WebSocketDisconnect), talking(client, origin):
            pass


def talking(client, origin=BASE):
    return client.websocket_connect(TALK, headers={"origin": origin})


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ({"toml": "polling = "}, "no valid TOML"),
        ({"toml": 5}, "is a text of at most"),
        ({"toml": "[polling]\nlimit = 0"}, "[polling] limit = 0"),
        ({"changes": {"polling.limit": "0"}}, "[polling] limit = 0"),
        ({"changes": {"polling.limt": "1"}}, "did you mean 'polling.limit'"),
        ({"changes": {"traffic.load_kbps": "?"}}, "load_kbps"),
        ({"toml": '[radio]\nmodel = "trace"\ntrace_file = "/dev/zero"'}, "is not read for the page"),
        ({"along": "polling.limit", "low": 3, "high": 3}, "polling.limit: the axis needs two ends"),
    ],
)
def test_a_bad_scenario_or_axis_is_refused_in_words_and_what_is_no_message_is_passed_over(
    owner, message, words
):
    with talking(owner) as talk:
        start = talk.receive_json()
        for text in ("no JSON", "[1]", '{"side": 5}', "[" * 10_000, '{"side": "C"}'):
            talk.send_text(text)
        talk.send_json({"side": "A", "id": 7, "toml": start["toml"], **message})
        answer = talk.receive_json()
        if "along" in message:
            assert answer["kind"] == "text"
            answer = talk.receive_json()
    assert (answer["kind"], answer["side"], answer["id"]) == ("problem", "A", 7)
    assert words in answer["message"]


def test_the_files_of_the_command_line_may_be_named(tmp_path):
    toml = f'[radio]\nmodel = "trace"\ntrace_file = "{tmp_path}/trace.txt"'
    found = scenario_of({"toml": toml}, {f"{tmp_path}/trace.txt"})
    assert found.radio.trace_file == f"{tmp_path}/trace.txt"


def test_a_taken_port_is_told_in_words():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        message = failure("explore", "--port", str(port), "--no-browser")
    assert f"--port {port}: cannot be used" in message and "--port 0 takes any" in message


@pytest.mark.parametrize(
    ("connection", "words"),
    [(None, "no browser was found here"), ("192.0.2.1 1 192.0.2.2 22", "ssh -N -L 5:127.0.0.1:5")],
)
def test_without_a_browser_the_address_is_told_and_on_a_remote_host_ssh(
    monkeypatch, capsys, connection, words
):
    monkeypatch.delenv("SSH_CONNECTION", raising=False)
    if connection:
        monkeypatch.setenv("SSH_CONNECTION", connection)
    monkeypatch.setattr(command.webbrowser, "open", lambda address: connection and pytest.fail("opened"))
    command._show("http://127.0.0.1:5/?token=x", 5)
    assert words in capsys.readouterr().err
