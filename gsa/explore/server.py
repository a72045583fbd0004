"""The page on this machine: the same document, whose first tab asks for the states that it shows."""

import io
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from threading import Lock
from typing import Any

from gsa._extras import brought_by
from gsa.explore._asking import asked, offered
from gsa.explore._made import CHOICES, made
from gsa.explore._page import filled, layers, policy
from gsa.explore._weights import weights
from gsa.explore._words import words
from gsa.groups import Group
from gsa.saved import Saved
from gsa.symmetry import LayerReport, measured_group

with brought_by("explore"):
    import uvicorn
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.exceptions import HTTPException
    from starlette.middleware import Middleware
    from starlette.requests import Request
    from starlette.responses import HTMLResponse, JSONResponse, Response
    from starlette.routing import Route

    from gsa.explore._guard import Guard, body, refusal
    from gsa.files.pictures import BENEATH, has_transparency, read_picture

__all__ = ["application", "serve"]

_KEPT = 8  # networks that somebody has asked for; made again when they have been forgotten


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
    name: str = "",
    key: str = "",
) -> Starlette:
    """The page at /, and what it asks for; every answer needs its question only, so nobody disturbs anybody.

        GET /?network=0            the page
        GET /part/NAME?network=0   data of another tab: words, weights or layers
        POST /picture?network=0    a file of a picture → the pixels that the network is given, a byte each
        POST /state?network=0&mirror=0&down=2&right=2&angle=0    such pixels → `asked`; &row=5&column=5 is a pixel

    In the place of network=0, group=R8&encoding=fourier&form=regular&neighbourhood=5&window=square is an untrained
    network of that kind, `made` when it is asked for. Where there is a key, key=… is part of each.

    Args:
        networks: trained ones, by the name that is shown. Beside each stands the first other one of the same pictures
            that has no group beyond shifts.
        host: the address of this machine that the page is served at; requests to another one are refused.
        reports: of other networks, called when layers are first looked at.
        name: of the address, which may be asked for as well.
        key: that a question must bring; "" answers whoever reaches the address.

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
    guard = Middleware(Guard, host=host, name=name, key=key)
    return Starlette(routes=routes, middleware=[guard], exception_handlers={HTTPException: refusal})


@dataclass(frozen=True)
class _Shown:
    """A network, and where there is one, its twin without a group; how the page asks for them, and what it is told."""

    networks: dict[str, Saved]
    query: dict[str, str]
    turn: dict[str, Any]

    @property
    def own(self) -> Saved:
        return next(iter(self.networks.values()))

    @property
    def plain(self) -> Saved | None:
        return [*self.networks.values(), None][1]

    @classmethod
    def of(cls, networks: dict[str, Saved], query: dict[str, str]) -> "_Shown":
        return cls(networks, query, offered(next(iter(networks.values()))))

    @cached_property
    def layers(self) -> list[dict[str, Any]]:
        """Each under the group of the first one; without a group, under quarter turns."""
        own = self.own.network.group
        return layers({name: (saved, measured_group(own)) for name, saved in self.networks.items()}, {})


class _Served:
    def __init__(self, networks: Mapping[str, Saved], reports: Callable[[], Mapping[str, LayerReport]]) -> None:
        self.names = list(networks)
        self.networks = networks
        self.shown = [_Shown.of(_with_twin(name, networks), {"network": str(i)}) for i, name in enumerate(networks)]
        self.parts: dict[str, Callable[[], Any]] = {"words": cache(words), "weights": cache(weights)}
        self.layers = cache(lambda: layers(self._measured(), reports()))
        self.made = lru_cache(_KEPT)(_made)
        self.computing = Lock()  # two cores are fast for one question, not for many at a time

    async def page(self, request: Request) -> Response:
        shown = await self._asked_for(request)
        data = {
            "names": list(shown.networks),
            "offered": self.names,
            "turn": shown.turn,
            "asks": shown.query | {"key": request.query_params.get("key", "")},
            "choices": CHOICES,
        }
        document = filled(data, live=True)
        return HTMLResponse(document, headers={"Content-Security-Policy": policy(document)})

    async def part(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name == "layers":
            shown = await self._asked_for(request)
            return JSONResponse(await self._computed(self._of_layers, shown))
        if name not in self.parts:
            raise HTTPException(404, "there is no such part")
        return JSONResponse(await self._computed(self.parts[name]))

    async def picture(self, request: Request) -> Response:
        known = (await self._asked_for(request)).own.pictures
        sent = io.BytesIO(await body(request))
        framed = await self._computed(read_picture, sent, "L", known.image_size, known.white, known.whole)
        told = f"A picture with transparent pixels, {BENEATH}." if await self._computed(has_transparency, sent) else ""
        return Response(framed.tobytes(), media_type="application/octet-stream", headers={"Told": told})

    async def state(self, request: Request) -> Response:
        shown = await self._asked_for(request)
        place = tuple(_whole(request, axis) for axis in ("mirror", "down", "right", "angle"))
        pixel = (_whole(request, "row"), _whole(request, "column")) if "row" in request.query_params else None
        given = (shown.own, shown.plain, await body(request), place, shown.turn["channels"], pixel)
        return JSONResponse(await self._computed(asked, *given))

    async def _asked_for(self, request: Request) -> _Shown:
        if "group" in request.query_params:
            return await self._computed(self.made, *(request.query_params.get(name, "") for name in CHOICES))
        number = _whole(request, "network", "0")
        if number >= len(self.names):
            raise HTTPException(404, "there is no such network")
        return self.shown[number]

    async def _computed(self, function: Callable[..., Any], *given: Any) -> Any:
        """Beside the loop that answers; 422 where what was given is refused."""

        def alone() -> Any:
            with self.computing:
                return function(*given)

        try:
            return await run_in_threadpool(alone)
        except ValueError as error:
            raise HTTPException(422, str(error)) from error

    def _of_layers(self, shown: _Shown) -> list[dict[str, Any]]:
        """Of the networks that were given, and first of one that was made."""
        return self.layers() if "network" in shown.query else shown.layers + self.layers()

    def _measured(self) -> dict[str, tuple[Saved, Group]]:
        """Each under its own group; without one, under that of a network that it stands beside."""
        beside = {name: shown.own.network.group for shown in self.shown for name in [*shown.networks][1:]}
        own = {name: saved.network.group for name, saved in self.networks.items()}
        return {
            name: (saved, measured_group(own[name] if own[name].order > 1 else beside.get(name, own[name])))
            for name, saved in self.networks.items()
        }


def _made(*chosen: str) -> _Shown:
    """A network that was asked for, and the same without a group."""
    query = dict(zip(CHOICES, chosen, strict=True))
    networks = {f"untrained {query['group']}": made(query)}
    if query["group"] != "Z2":
        networks["untrained Z2"] = made(query | {"group": "Z2"})
    return _Shown.of(networks, query)


def _whole(request: Request, name: str, default: str = "") -> int:
    text = request.query_params.get(name, default)
    if not (text.isascii() and text.isdecimal() and len(text) < 6):
        raise HTTPException(422, f"{name} must be a whole number of at most 5 digits")
    return int(text)


def _with_twin(name: str, networks: Mapping[str, Saved]) -> dict[str, Saved]:
    """A network, and the first other one of the same pictures whose group has one element."""
    known = networks[name].pictures
    for other, saved in networks.items():
        same = (saved.pictures.image_size, saved.pictures.classes) == (known.image_size, known.classes)
        if other != name and same and saved.network.group.order == 1:
            return {name: networks[name], other: saved}
    return {name: networks[name]}
