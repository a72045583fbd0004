"""The page that is served, in a real browser: own pictures, other networks, two people at a time."""

import io
import socket
import threading
import time

import pytest
import uvicorn
from PIL import Image

from gsa.explore.server import application
from gsa.saved import read
from tests.explore.test_browser import CHROMIUM, browser, error, playwright, seen, slide

__all__ = ["browser"]
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not CHROMIUM.exists(), reason="needs Debian's package chromium"),
]
NETWORKS = ("digits_gsa", "digits_gsa_z2", "rotmnist_gsa")


@pytest.fixture(scope="module")
def address():
    bound = socket.create_server(("127.0.0.1", 0))
    answers = application({name: read(name) for name in NETWORKS}, key="a-key")
    server = uvicorn.Server(uvicorn.Config(answers, log_level="warning", lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
    thread.start()
    yield f"http://127.0.0.1:{bound.getsockname()[1]}/"
    server.should_exit = True
    thread.join()
    bound.close()


@pytest.fixture
def opened(browser, address):
    """Opens the page, each time for another person; what it complains of fails the test."""
    complaints, contexts = [], []

    def open_page(network=0):
        contexts.append(browser.new_context())
        tab = contexts[-1].new_page()
        tab.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        tab.on("pageerror", lambda error: complaints.append(str(error)))
        tab.goto(f"{address}?key=a-key&network={network}")
        tab.wait_for_selector("body[data-drawn]")
        return tab

    open_page.complaints = complaints
    yield open_page
    for context in contexts:
        context.close()
    assert not complaints


def goes_to(page, angle, degrees):
    slide(page, "#angle", angle)
    page.wait_for_selector(f'body[data-drawn="{degrees}°"]')


def draw(page, *points):
    box = page.locator("#pad").bounding_box()
    places = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in points]
    page.mouse.move(*places[0])
    page.mouse.down()
    for place in places[1:]:
        page.mouse.move(*place, steps=4)
    page.mouse.up()


def png(picture):
    file = io.BytesIO()
    picture.save(file, "PNG")
    return {"name": "mine.png", "mimeType": "image/png", "buffer": file.getvalue()}


def shows(page, what):
    page.wait_for_selector(f'#lifted canvas[aria-label^="{what}"] >> nth=0')


def subject(page):
    return page.get_attribute("#lifted canvas", "aria-label")


def test_what_is_drawn_is_turned_exactly_and_cleared(opened):
    page = opened()
    draw(page, (0.35, 0.25), (0.65, 0.25), (0.45, 0.8))
    shows(page, "your picture")
    before = seen(page, "#lifted")
    goes_to(page, 36, 90)
    assert error(page, "own") < 1e-5 and error(page, "plain") > 1e-2 and seen(page, "#lifted") != before
    assert "in R4: exact" in page.inner_text("#told") and "moved to their new poses" in page.inner_text("#moved")
    page.focus("#clear")
    page.keyboard.press("Enter")
    shows(page, "the digit 2")


def test_a_file_is_taken_and_what_is_none_gets_a_message(opened):
    page = opened()
    page.set_input_files("#file", png(Image.linear_gradient("L")))
    shows(page, "your picture")
    shown = seen(page, "#lifted")
    page.check("#inverted")
    page.wait_for_timeout(300)
    assert seen(page, "#lifted") != shown
    page.set_input_files("#file", {"name": "mine.png", "mimeType": "image/png", "buffer": b"no picture"})
    page.wait_for_selector("#trouble:not(:empty)")
    assert "it is not a whole file of PNG" in page.inner_text("#trouble")
    page.set_input_files("#file", {"name": "mine.png", "mimeType": "image/png", "buffer": bytes(4_000_001)})
    page.wait_for_selector("#trouble:has-text('at most 4 MB')")
    goes_to(page, 36, 90)
    assert error(page, "own") < 1e-5 and subject(page) == "your picture at 90°"
    assert all("422" in complaint for complaint in opened.complaints) and len(opened.complaints) == 1
    opened.complaints.clear()


def test_controls_and_tabs_work_as_on_the_page_without_a_server(opened):
    page = opened()
    for change in (
        lambda: slide(page, "#angle", 5),
        lambda: page.check("#mirror"),
        lambda: slide(page, "#right", 4),
        lambda: slide(page, "#down", 0),
        lambda: page.click("#digits button:nth-child(3)"),
    ):
        before = {view: seen(page, view) for view in ("#lifted", "#looking", "#bars")}
        change()
        for _ in range(20):
            page.wait_for_timeout(250)
            if not (same := [view for view in before if seen(page, view) == before[view]]):
                break
        assert not same
    for _ in range(60):  # all angles are asked for in time
        page.wait_for_timeout(250)
        if (curve := page.get_attribute("#curve path >> nth=1", "d").count("L")) == 72:
            break
    assert curve == 72
    for tab, ready in (("words", "#matrices td"), ("layers", "#layers td"), ("weights", "#permuted td")):
        page.click(f"#tab-{tab}")
        page.wait_for_selector(ready)
    assert page.inner_text("#models button:nth-child(3)") == "rotmnist_gsa"


def test_a_tab_that_is_looked_at_comes_before_the_curve(opened):
    page, held, asked = opened(), [], []
    page.wait_for_selector("#filling:has-text('computing')")
    assert page.inner_text("#of-class") == "2"
    page.route("**/part/words*", lambda route: held.append(route))
    page.click("#tab-words")
    page.wait_for_timeout(300)
    page.on("request", lambda request: asked.append(request.url))
    page.wait_for_timeout(1000)
    assert held and not asked
    held[0].continue_()
    page.wait_for_selector("#matrices td")
    page.wait_for_timeout(1000)
    assert asked


def test_two_people_do_not_disturb_each_other(opened):
    first, second, alone = opened(), opened(), opened()
    goes_to(alone, 20, 50)
    draw(second, (0.5, 0.2), (0.5, 0.8))
    shows(second, "your picture")
    for step in range(1, 9):
        slide(first, "#angle", step)
        slide(second, "#angle", 144 - step)
    goes_to(first, 20, 50)
    goes_to(second, 20, 50)
    for view in ("#lifted", "#bars"):
        assert seen(first, view) == seen(alone, view) != seen(second, view)
    assert subject(first) == "the digit 2 at 50°" and subject(second) == "your picture at 50°"


def test_an_older_answer_never_covers_a_newer_one(opened):
    page = opened()
    page.wait_for_timeout(100)

    def late(route):
        if "angle=7" in route.request.url and "angle=70" not in route.request.url:
            time.sleep(0.3)
        route.continue_()

    page.route("**/state?*", late)
    slide(page, "#angle", 7)
    slide(page, "#angle", 0)  # which is known
    assert page.get_attribute("body", "data-drawn") == "0°"
    page.wait_for_timeout(600)
    assert page.get_attribute("body", "data-drawn") == "0°" and page.inner_text("#angle-told") == "0°"


def test_another_network_is_chosen(opened):
    page = opened()
    page.select_option("#network", "2")
    page.wait_for_selector("body[data-drawn] #name:has-text('rotmnist_gsa')")
    assert not page.is_visible("#error-plain") and not page.is_visible("#beside")
    goes_to(page, 36, 90)
    assert error(page, "own") < 1e-5 and page.locator("#lifted canvas").count() == 9


def chooses(page, **kind):
    """Another kind of network in the form, and the page that comes of it."""
    for name, value in kind.items():
        page.select_option(f"#another select[name={name}]", value)
    page.eval_on_selector("body", "e => delete e.dataset.drawn")
    page.click("#another button")


def test_a_network_of_any_kind_is_chosen_and_the_picture_goes_along(opened):
    page = opened()
    assert "untrained" not in page.inner_text("#panel-turn p >> nth=0")
    draw(page, (0.35, 0.25), (0.65, 0.25), (0.45, 0.8))
    shows(page, "your picture")
    goes_to(page, 36, 90)
    for kind in ({"group": "R8"}, {"encoding": "fourier"}, {"form": "summed"}, {"neighbourhood": "all"}):
        views = ("#bars",) if "form" in kind else ("#lifted", "#looking", "#encoding", "#bars")  # lifting has one form
        before = {view: seen(page, view) for view in views}
        chooses(page, **kind)
        page.wait_for_selector('body[data-drawn="90°"]')
        assert not [view for view in before if seen(page, view) == before[view]], kind
        assert 0 < error(page, "own") < 1e-5 < 1e-3 < error(page, "plain")
        assert "untrained networks" in page.inner_text("#panel-turn p >> nth=0") and page.is_visible("#beside")
        assert subject(page) == "your picture at 90°" and page.locator("#lifted canvas").count() == 9
    before = seen(page, "#looking")
    page.press("#looking canvas", "ArrowDown")
    page.wait_for_selector("#looking :text('row 6')")
    assert seen(page, "#looking") != before
    page.click("#tab-layers")
    page.wait_for_selector("#layers td")
    assert page.inner_text("#models button >> nth=0") == "untrained R8" and page.locator("#layers .bad").count() == 0
    page.click("#tab-turn")
    page.select_option("#network", "0")
    page.wait_for_selector("body[data-drawn] #name:has-text('digits_gsa')")
    assert subject(page) == "your picture at 90°" and page.inner_text("#twin") == "digits_gsa_z2"


def test_a_turn_that_is_not_in_the_group_is_called_so_and_r16_is_turned_by_its_own(opened):
    page = opened("0&group=Z2M&encoding=constant&form=summed&neighbourhood=5&window=disk")
    goes_to(page, 36, 90)
    assert page.inner_text("#turns div").split() == ["0°", "90°", "180°", "270°"]
    assert error(page, "own") < 1e-5
    assert "A turn by 90° is not in Z2M, though this network does not change under it." in page.inner_text("#told")
    page = opened("0&group=R16&encoding=fourier&form=summed&neighbourhood=5&window=disk")
    assert page.inner_text("#turns div").split() == [f"{45 * turn}°" for turn in range(8)]
    goes_to(page, 9, 22.5)


def test_nothing_is_promised_of_an_encoding_that_breaks_the_group(opened):
    for encoding, promised in (("fourier", True), ("absolute", False)):
        page = opened(f"0&group=R4&encoding={encoding}&form=regular&neighbourhood=5&window=square")
        assert ("it turns with the picture" in page.inner_text("#panel-turn")) is promised
        assert ("taken over by another" in page.inner_text("#looks")) is promised
        assert page.inner_text("#shown b") == f"an untrained network, R4, {encoding}, regular, 5×5"


def test_a_kind_that_cannot_be_is_refused_where_it_was_chosen(opened):
    page, other = opened(), opened()
    chooses(page, group="R8", encoding="table")
    page.wait_for_selector("#trouble:has-text('has entries on the pixel grid only')")
    shown = "digits_gsa, R4, quadratic, regular, 3×3"
    assert page.inner_text("#shown b") == shown and f"(Still shown: {shown}.)" in page.inner_text("#trouble")
    assert page.inner_text("#name") == "digits_gsa" and page.input_value("#another select[name=encoding]") == "table"
    page.focus("#another select[name=group]")
    page.keyboard.press("Z")
    page.focus("#another button")
    page.keyboard.press("Enter")
    page.wait_for_selector("body[data-drawn] #name:has-text('untrained Z2')")
    assert not page.is_visible("#error-plain") and not page.inner_text("#trouble")
    goes_to(other, 36, 90)
    assert other.inner_text("#name") == "digits_gsa" and error(other, "own") < 1e-5
    assert all("422" in complaint for complaint in opened.complaints) and len(opened.complaints) == 1
    opened.complaints.clear()


@pytest.mark.parametrize("kind", ["", "&group=R16&encoding=rotary&form=regular&neighbourhood=all&window=disk"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1400])
def test_nothing_is_cut_off(opened, width, scheme, kind):
    page = opened(f"0{kind}")
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert playwright and not page.evaluate(
        "[...document.querySelectorAll('input,select')].filter(e => !e.labels.length).length"
    )
