"""The page on this machine: the same document, whose first tab asks for the states that it shows."""

import io
import socket
from collections.abc import Callable, Mapping
from functools import cache
from threading import Lock
from typing import Any

from gsa._extras import not_installed
from gsa.explore._asking import asked, offered
from gsa.explore._page import filled, layers, policy
from gsa.explore._weights import weights
from gsa.explore._words import words
from gsa.groups import Group, group
from gsa.saved import Saved
from gsa.symmetry import LayerReport

try:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.exceptions import HTTPException
    from starlette.middleware import Middleware
    from starlette.requests import Request
    from starlette.responses import HTMLResponse, JSONResponse, Response
    from starlette.routing import Route

    from gsa.explore._guard import Guard, body, refusal
    from gsa.files.pictures import read_picture
except ModuleNotFoundError as error:
    raise not_installed(error.name, "explore") from error

__all__ = ["application", "serve"]


def serve(answers: Starlette, bound: socket.socket) -> None:
    """Answer on a socket that is bound, until Ctrl-C."""
    try:
        uvicorn.Server(uvicorn.Config(answers, log_level="warning", lifespan="off")).run(sockets=[bound])
    except KeyboardInterrupt:
        return


def application(
    networks: Mapping[str, Saved],
    host: str = "127.0.0.1",
    reports: Callable[[], Mapping[str, LayerReport]] = dict,
) -> Starlette:
    """The page at /, and what it asks for; every answer needs its question only, so nobody disturbs anybody.

        GET /?network=0            the page
        GET /part/NAME             data of another tab: words, weights or layers
        POST /picture?network=0    a file of a picture → the pixels that the network is given, a byte each
        POST /state?network=0&mirror=0&down=2&right=2&angle=0    such pixels → `asked`

    Args:
        networks: trained ones, by the name that is shown. Beside each stands the first other one of the same pictures
            that has no group beyond shifts.
        host: the address of this machine that the page is served at; requests to another one are refused.
        reports: of other networks, called when layers are first looked at.

    Raises:
        ValueError: networks that the page cannot show.
    """
    served = _Served(networks, reports)
    routes = [
        Route("/", served.page),
        Route("/part/{name}", served.part),
        Route("/picture", served.picture, methods=["POST"]),
        Route("/state", served.state, methods=["POST"]),
    ]
    guard = Middleware(Guard, host=host)
    return Starlette(routes=routes, middleware=[guard], exception_handlers={HTTPException: refusal})


class _Served:
    def __init__(self, networks: Mapping[str, Saved], reports: Callable[[], Mapping[str, LayerReport]]) -> None:
        self.names = list(networks)
        self.twins = {name: _twin(name, networks) for name in networks}
        self.networks = networks
        self.turns = {name: offered(saved) for name, saved in networks.items()}
        self.parts: dict[str, Callable[[], Any]] = {
            "words": cache(words),
            "weights": cache(weights),
            "layers": cache(lambda: layers(self._measured(), reports())),
        }
        self.computing = Lock()  # two cores are fast for one question, not for many at a time

    async def page(self, request: Request) -> Response:
        name = self._name(request)
        twin = self.twins[name]
        data = {"names": [name, twin] if twin else [name], "offered": self.names, "turn": self.turns[name]}
        document = filled(data, live=True)
        return HTMLResponse(document, headers={"Content-Security-Policy": policy(document)})

    async def part(self, request: Request) -> Response:
        made = self.parts.get(request.path_params["name"])
        if made is None:
            raise HTTPException(404, "there is no such part")
        return JSONResponse(await self._computed(made))

    async def picture(self, request: Request) -> Response:
        side = self.networks[self._name(request)].pictures.image_size
        sent = io.BytesIO(await body(request))
        framed = await self._computed(read_picture, sent, "L", side)
        return Response(framed.tobytes(), media_type="application/octet-stream")

    async def state(self, request: Request) -> Response:
        name = self._name(request)
        twin = self.twins[name]
        place = tuple(_whole(request, axis) for axis in ("mirror", "down", "right", "angle"))
        both, channels = (self.networks[name], self.networks[twin] if twin else None), self.turns[name]["channels"]
        return JSONResponse(await self._computed(asked, *both, await body(request), place, channels))

    async def _computed(self, function: Callable[..., Any], *given: Any) -> Any:
        """Beside the loop that answers; 422 where what was given is refused."""

        def alone() -> Any:
            with self.computing:
                return function(*given)

        try:
            return await run_in_threadpool(alone)
        except ValueError as error:
            raise HTTPException(422, str(error)) from error

    def _measured(self) -> dict[str, tuple[Saved, Group]]:
        """Each under its own group; without one, under that of a network that it stands beside."""
        groups = {twin: self.networks[name].network.group for name, twin in self.twins.items()}
        own = {name: saved.network.group for name, saved in self.networks.items()}
        return {
            name: (saved, own[name] if own[name].order > 1 else groups.get(name, group("R4")))
            for name, saved in self.networks.items()
        }

    def _name(self, request: Request) -> str:
        number = _whole(request, "network", "0")
        if number >= len(self.names):
            raise HTTPException(404, "there is no such network")
        return self.names[number]


def _whole(request: Request, name: str, default: str = "") -> int:
    text = request.query_params.get(name, default)
    if not (text.isascii() and text.isdecimal() and len(text) < 6):
        raise HTTPException(422, f"{name} must be a whole number of at most 5 digits")
    return int(text)


def _twin(name: str, networks: Mapping[str, Saved]) -> str | None:
    """The first other network of the same pictures whose group has one element."""
    known = networks[name].pictures
    for other, saved in networks.items():
        same = (saved.pictures.image_size, saved.pictures.classes) == (known.image_size, known.classes)
        if other != name and same and saved.network.group.order == 1:
            return other
    return None
