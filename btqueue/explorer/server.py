"""The server of the page: for this machine alone, for holders of the token, and without access to files.

Starlette and uvicorn carry it: both are kept, small, and without further needs. The page, its script and its
style are files of this package, and nothing is fetched from anywhere else.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import secrets
import socket
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from importlib.resources import files
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import HTTPConnection, Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from btqueue.explorer.controls import axis_of, controls
from btqueue.explorer.curves import SIMULATED, Desk, places_between
from btqueue.explorer.messages import metrics_told, scenario_of, told_answer, told_curve, told_scenario
from btqueue.scenario import Scenario, ScenarioError
from btqueue.scenario.topology import topology
from btqueue.study.points import known_key, takes_whole_numbers
from btqueue.study.provenance import plain

HOST = "127.0.0.1"
NAMES = (HOST, "localhost")
"""Hosts by which the page may be called: another name that leads here belongs to a stranger's page."""

PAGE = {"/": ("index.html", "text/html"), "/explorer.js": ("explorer.js", "text/javascript")}
PAGE |= {"/explorer.css": ("explorer.css", "text/css")}

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
NO_TOKEN = "This page is private: open the address that btqueue explore has printed, then your link again.\n"


class PortTaken(OSError):
    """The port cannot be listened to; the message names a remedy."""


def listen(port: int) -> socket.socket:
    """Return a socket on the loopback interface.

    Args:
        port: its number, 0 for any that is free.

    Raises:
        PortTaken: another program has it, or it is not for this user.
    """
    server = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        server.bind((HOST, port))
        server.listen()
    except OSError as error:
        server.close()
        raise PortTaken(
            f"--port {port}: cannot be used ({error.strerror}); end the program that has it, or give another "
            "one (--port 0 takes any that is free)"
        ) from None
    return server


class Explorer:
    """The page of one scenario, and its token."""

    def __init__(self, scenario: Scenario, token: str = "") -> None:
        """Prepare the page; the token is drawn if none is given."""
        self.scenario, self.token = scenario, token or secrets.token_urlsafe(24)
        self.desk = Desk()
        self.turned = controls(scenario)
        self.app = Starlette(
            routes=[
                *(Route(path, self._page) for path in PAGE),
                WebSocketRoute("/talk", self._talk),
            ],
            middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=NAMES)],
            lifespan=self._lifespan,
        )

    def address(self, port: int) -> str:
        """Return the address with the token."""
        return f"http://{HOST}:{port}/?token={self.token}"

    def prepare(self) -> None:
        """Find the picture and a first curve, so that the page waits for no import and no compiler."""

        async def first() -> None:
            axis = axis_of(self.turned)
            told_scenario(self.scenario, self.turned)
            places = places_between(axis["low"], axis["high"], takes_whole_numbers(axis["along"]))
            async for curve in self.desk.curve(self.scenario, axis["along"], places):
                if len(curve.answers) > len(curve.sketched):
                    break

        asyncio.run(first())

    def serve(self, listening: socket.socket) -> None:
        """Serve until Ctrl-C."""
        sys.setswitchinterval(5e-4)  # (s): a first curve waits less for theory under way
        config = uvicorn.Config(
            self.app, log_level="warning", access_log=False, ws="websockets-sansio", ws_max_size=2**18,
            timeout_graceful_shutdown=1,
        )  # fmt: skip
        uvicorn.Server(config).run(sockets=[listening])

    @asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        try:
            yield
        finally:
            self.desk.close()

    def _cookie(self, connection: HTTPConnection) -> str:
        """Return the cookie's name: browsers send cookies of one port to all others."""
        return f"btqueue-{connection.scope['server'][1]}"

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self.token.encode())

    def _knows_token(self, connection: HTTPConnection) -> bool:
        return self._is_token(connection.cookies.get(self._cookie(connection), ""))

    async def _page(self, request: Request) -> Response:
        token = request.query_params.get("token", "")
        if not (self._is_token(token) or self._knows_token(request)):
            return PlainTextResponse(NO_TOKEN, 403, HEADERS)
        if token:  # it leaves the address, so that no bookmark and no copied link holds it
            answer: Response = RedirectResponse("/", 303, HEADERS)
            if self._is_token(token):
                answer.set_cookie(self._cookie(request), token, httponly=True, samesite="strict")
            return answer
        name, kind = PAGE[request.url.path]
        content = files("btqueue.explorer").joinpath("page", name).read_bytes()
        return Response(content, media_type=kind, headers=HEADERS)

    async def _talk(self, talk: WebSocket) -> None:
        """Answer the page's messages; a message about a side replaces the side's earlier message."""
        origin = talk.headers.get("origin", "")
        if not self._knows_token(talk) or origin != f"http://{talk.headers.get('host', '')}":
            await talk.close()  # before it is accepted: HTTP 403
            return
        await talk.accept()
        turn = asyncio.Lock()

        async def tell(kind: str, **content: Any) -> None:
            async with turn:
                await talk.send_text(json.dumps(plain({"kind": kind, **content}), allow_nan=False))

        tasks: dict[Any, asyncio.Task[None]] = {}
        try:
            start = self.scenario.to_toml(resolved=False)
            await tell("start", toml=start, metrics=metrics_told())
            while True:
                message = _read(await talk.receive_text())
                side = message.get("side")
                if side in tasks:
                    tasks[side].cancel()
                if side in ("A", "B"):
                    tasks[side] = asyncio.create_task(self._answer(message, tell))
        except WebSocketDisconnect:
            pass
        finally:
            for task in tasks.values():
                task.cancel()

    async def _answer(self, message: Mapping[str, Any], tell: Any) -> None:
        """Tell everything about one side: scenario, curve, present point, simulated points, ranking."""
        about = {"side": message["side"], "id": message.get("id")}
        try:
            scenario = scenario_of(message, self.scenario.files)
            # Sliders keep their ends and their order while one drags: those of the scenario without changes.
            base = scenario_of({**message, "changes": {}}, self.scenario.files)
            if message.get("fresh"):
                turned = self.turned if base == self.scenario else controls(base)
                axis = {} if "along" in message else axis_of(turned)
                message = {**message, **axis}
                await tell("scenario", **about, **told_scenario(scenario, turned), axis=axis)
            else:
                await tell("text", **about, toml=scenario.to_toml(resolved=False))
            along, low, high, whole = _axis(message)
            scenario.changed({along: high})  # an axis that no scenario takes is refused in words
        except ScenarioError as error:
            await tell("problem", **about, message=str(error))
            return

        async def ranked() -> None:
            if message.get("rank"):
                async for effects in self.desk.effects(base):
                    await tell("ranking", **about, effects=effects)

        async def simulated() -> None:
            if not message.get("simulate"):
                return
            groups = topology(scenario).flow_labels().get("group", ())
            present = await self.desk.answer(scenario, "simulate")
            await tell("simulated", **about, place=None, **told_answer(present, groups))
            for place in places_between(low, high, whole, SIMULATED):
                found = await self.desk.answer_at(scenario, along, place, "simulate")
                await tell("simulated", **about, place=place, **told_answer(found, groups))

        with suppress(WebSocketDisconnect, RuntimeError):  # the page has gone
            present: dict[str, Any] = {}
            groups = topology(scenario).flow_labels().get("group", ())
            places = places_between(low, high, whole)
            async for curve in self.desk.curve(scenario, along, places):
                await tell("curve", **about, **told_curve(curve, groups))
                if not present:
                    present = told_answer(await self.desk.answer(scenario), groups)
                    await tell("answer", **about, **present)
            await asyncio.gather(ranked(), simulated())
            await tell("done", **about)


def _read(text: str) -> dict[str, Any]:
    with suppress(ValueError, RecursionError):
        message = json.loads(text)
        if isinstance(message, dict) and isinstance(message.get("side"), str):
            return message
    return {}


def _axis(message: Mapping[str, Any]) -> tuple[str, float, float, bool]:
    """Return key, ends and kind of the horizontal axis.

    Raises:
        ScenarioError: the message has none.
    """
    along = known_key(message.get("along"))
    low, high = message.get("low"), message.get("high")
    if not (isinstance(low, int | float) and isinstance(high, int | float) and -1e12 < low < high < 1e12):
        raise ScenarioError(f"{along}: the axis needs two ends, the smaller one first", along)
    return along, low, high, takes_whole_numbers(along)
