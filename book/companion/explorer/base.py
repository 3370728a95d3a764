"""What every explorer shares: controls, pictures, and work in a thread that can be stopped."""

from __future__ import annotations

import base64
import functools
import html
import os
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import ipywidgets
import torch
import yaml

from companion.explorer.pictures import Figure, png
from companion.style import ARCHITECTURE_NAMES
from nadtools.architectures import available
from nadtools.checks import check_seed, check_shape
from nadtools.device import resolve_device

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class StaticNotice:
    """What a static page shows in the place of an explorer: a picture of it, and the way to the live one.

    Attributes
    ----------
    name
        The explorer's name, for example ``"direction_explorer"``.
    what
        What a reader can do with it, in a sentence.
    controls
        Their names and values.
    pictures
        PNG files.
    status
        The explorer's own line on what it shows.
    address
        Of the chapter in a live notebook.
    """

    name: str
    what: str
    controls: tuple[tuple[str, str], ...] = ()
    pictures: tuple[bytes, ...] = ()
    status: str = ""
    address: str | None = None

    def __repr__(self) -> str:
        return f"{self.name}() needs a running kernel: open this chapter in JupyterLab (make lab) and run the cell."

    def _repr_html_(self) -> str:
        alt = html.escape(f"{self.name}: {self.status or self.what}", quote=True)
        images = "".join(
            f'<img alt="{alt}" src="data:image/png;base64,{base64.b64encode(picture).decode()}">'
            for picture in self.pictures
        )
        controls = "".join(
            f"<span>{html.escape(name)} <strong>{html.escape(value)}</strong></span>" for name, value in self.controls
        )
        link = ""
        if self.address:
            link = f'<a href="{html.escape(self.address, quote=True)}">Open this chapter as a live notebook</a>, or run'
        return (
            f'<figure class="nadtools-explorer"><div class="controls">{controls}</div><div>{images}</div>'
            f"<figcaption>{html.escape(self.what)} <em>A picture of the explorer.</em> {link or 'Run'} "
            "<code>make lab</code> on your own machine.</figcaption></figure>"
        )


def is_static() -> bool:
    """Whether the book is being built as static pages."""
    return os.environ.get("NADTOOLS_STATIC", "") not in ("", "0")


def live_only(make: Callable[P, T]) -> Callable[P, T | StaticNotice]:
    """Make an explorer return a picture of itself where the book is built as static pages.

    An explorer that opens without a picture is started, and drawn when its work is done.

    Parameters
    ----------
    make
        A function that builds an explorer; the first line of its docstring says what a reader can do with it.
    """

    @functools.wraps(make)
    def make_or_draw(*args: P.args, **kwargs: P.kwargs) -> T | StaticNotice:
        made = make(*args, **kwargs)
        return _picture_of(made, make) if is_static() and isinstance(made, Explorer | PictureExplorer) else made

    return make_or_draw


def _picture_of(made: Explorer | PictureExplorer, make: Callable[..., Any]) -> StaticNotice:
    if isinstance(made, Explorer) and not _pictures(made.ui):
        made.start()
        made.wait()
    what = (make.__doc__ or "").strip().partition("\n")[0]
    status, controls = html.unescape(made.status.value), tuple(_controls(made.ui))
    return StaticNotice(make.__name__, what, controls, _pictures(made.ui), status, _live_address(make.__module__))


def _widgets(widget: ipywidgets.Widget) -> Iterator[ipywidgets.Widget]:
    yield widget
    for child in getattr(widget, "children", ()):
        yield from _widgets(child)


def _pictures(ui: ipywidgets.Widget) -> tuple[bytes, ...]:
    return tuple(bytes(one.value) for one in _widgets(ui) if isinstance(one, ipywidgets.Image) and one.value)


def _controls(ui: ipywidgets.Widget) -> Iterator[tuple[str, str]]:
    for widget in _widgets(ui):
        name, value = getattr(widget, "description", ""), getattr(widget, "label", getattr(widget, "value", None))
        if name and value is not None and not isinstance(widget, ipywidgets.IntProgress):
            yield name, f"{value:.3g}" if isinstance(value, float) else str(value)


def _live_address(module: str) -> str | None:
    """Of the notebook of a chapter's module, where the book's configuration says that notebooks run."""
    root = Path(__file__).resolve().parents[3]
    number = re.search(r"chapter_(\d+)", module)
    notebooks = sorted((root / "book").glob(f"{number[1]}-*.ipynb")) if number else []
    config = root / "_config.yml"
    if not notebooks or not config.is_file():
        return None
    settings = yaml.safe_load(config.read_text(encoding="utf-8"))
    repository, launch = settings["repository"], settings["launch_buttons"]
    name = repository["url"].removeprefix("https://github.com/")
    notebook = f"urlpath=lab/tree/book/{notebooks[0].name}"
    return f"{launch['binderhub_url']}/v2/gh/{name}/{repository['branch']}?{notebook}"


LABELS = {"style": {"description_width": "7em"}}
SLIDER: dict[str, Any] = {"continuous_update": False, **LABELS}


class Explorer:
    """Controls, pictures, a line of status, and one piece of work at a time in a thread that can be stopped."""

    def __init__(
        self,
        shape: tuple[int, int],
        seed: int,
        device: str | torch.device | None,
        architectures: Sequence[str] | None = None,
    ) -> None:
        height, width = check_shape("shape", shape)
        self._shape = (height, width)
        self._seed = check_seed(seed)
        self._device = resolve_device(device)
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._lock = threading.RLock()  # for drawing, and for what says whether work is going on
        self._running = False
        # One of f and −f is enough: both name the same cosine.
        self.frequency_i = ipywidgets.IntSlider(
            value=min(3, height // 2), min=-(height // 2), max=height // 2, description="frequency i", **SLIDER
        )
        self.frequency_j = ipywidgets.IntSlider(
            value=min(4, width // 2), min=0, max=width // 2, description="frequency j", **SLIDER
        )
        names = architectures or available()
        self.architecture = ipywidgets.Dropdown(
            options=[(ARCHITECTURE_NAMES.get(name, name), name) for name in names],
            value="lenet" if "lenet" in names else names[0],
            description="architecture",
            **LABELS,
        )
        self.stop_button = ipywidgets.Button(description="Stop", icon="stop", disabled=True)
        self.stop_button.on_click(lambda _: self.stop())
        self.status = ipywidgets.HTML()

    def _lay_out(
        self,
        start_button: ipywidgets.Button,
        fixed_while_running: Sequence[ipywidgets.Widget],
        controls: Sequence[ipywidgets.Widget],
        pictures: Sequence[ipywidgets.Widget],
    ) -> None:
        self._start_button, self._fixed_while_running = start_button, fixed_while_running
        start_button.on_click(lambda _: self.start())
        self.ui = ipywidgets.HBox(
            [ipywidgets.VBox([*controls, self.status]), ipywidgets.VBox(list(pictures))],
            layout=ipywidgets.Layout(flex_flow="row wrap"),
        )

    def _repr_mimebundle_(self, **options: Any) -> Any:
        return self.ui._repr_mimebundle_(**options)

    def start(self) -> None:
        """Begin the work, unless it is going on."""
        raise NotImplementedError

    def stop(self) -> None:
        """Ask the work to end after its current step."""
        self._stop.set()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the work to end, at most ``timeout`` seconds; return whether it has."""
        if self._thread is not None:
            self._thread.join(timeout)
            return not self._thread.is_alive()
        return True

    def _begin(self, name: str, work: Callable[[], None]) -> None:
        """Do the work in a thread, and say so if it fails."""

        def run() -> None:
            try:
                work()
            except Exception as error:  # a thread has nobody above it who could show the error
                self._say(f"The {name} failed: {type(error).__name__}: {error}")
            finally:
                self._set_running(False)

        self._stop.clear()
        self._set_running(True)
        self._thread = threading.Thread(target=run, name="nadtools-explorer", daemon=True)
        self._thread.start()

    def _set_running(self, running: bool) -> None:
        with self._lock:
            self._running = running
            for control in (*self._fixed_while_running, self._start_button):
                control.disabled = running
            self.stop_button.disabled = not running

    def _show(self, image: ipywidgets.Image, draw: Callable[[], Figure]) -> None:
        with self._lock:
            image.value, image.layout.display = png(draw()), None

    def _say(self, message: str) -> None:
        self.status.value = html.escape(message)


def hidden_image() -> ipywidgets.Image:
    """A picture that shows once it has content."""
    # Hidden until there is something to show: browsers draw a broken image otherwise.
    return ipywidgets.Image(format="png", layout=ipywidgets.Layout(max_width="100%", display="none"))


class PictureExplorer:
    """Controls, a picture that follows them at once, and a line of status."""

    def __init__(self, *controls: ipywidgets.Widget) -> None:
        self.picture, self.status = hidden_image(), ipywidgets.HTML()
        self._changed()  # refuses bad arguments before anything is shown
        self.ui = ipywidgets.HBox(
            [ipywidgets.VBox([*controls, self.status]), self.picture], layout=ipywidgets.Layout(flex_flow="row wrap")
        )
        for control in controls:
            control.observe(self._changed, "value")

    def _repr_mimebundle_(self, **options: Any) -> Any:
        return self.ui._repr_mimebundle_(**options)

    def _changed(self, _: Any = None) -> None:
        raise NotImplementedError

    def _show(self, figure: Figure, message: str) -> None:
        self.status.value = html.escape(message)
        self.picture.value, self.picture.layout.display = png(figure), None
