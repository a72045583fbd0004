"""The page in a real browser, opened as a file: every control changes what is seen, nothing goes wrong."""

from pathlib import Path

import pytest

from gsa import explore
from gsa.saved import read

CHROMIUM = Path("/usr/bin/chromium")
playwright = pytest.importorskip("playwright.sync_api", reason="needs the package playwright")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not CHROMIUM.exists(), reason="needs Debian's package chromium"),
]


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    path = tmp_path_factory.mktemp("explore") / "page.html"
    path.write_text(explore.page(read("digits_gsa"), read("digits_gsa_z2"), steps=24), encoding="utf-8")
    return path.as_uri()


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as started:
        chromium = started.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser, address):
    """An open page without network; what it complains of fails the test."""
    complaints = []
    context = browser.new_context(offline=True)
    tab = context.new_page()
    tab.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    tab.on("request", lambda request: complaints.append(request.url) if request.url != address else None)
    tab.goto(address)
    tab.wait_for_selector("body[data-ready]")
    yield tab
    context.close()
    assert not complaints


def seen(page, selector):
    """What an element shows: its text, and the pixels of its canvases."""
    return page.eval_on_selector(
        selector,
        "e => e.innerHTML + [...e.querySelectorAll('canvas')].map(c => c.toDataURL() + c.style.cssText).join()",
    )


def slide(page, selector, value):
    page.eval_on_selector(selector, f"e => {{ e.value = {value}; e.dispatchEvent(new Event('input')) }}")


def error(page, which):
    return float(page.inner_text(f"#error-{which} strong"))


def test_a_quarter_turn_is_exact_with_the_group_and_red_without(page):
    assert "trained alike" in page.inner_text("#panel-turn p") and page.inner_text("#twin") == "digits_gsa_z2"
    page.click("#turns button:has-text('90°')")
    assert page.inner_text("#angle-told") == "90°"
    assert 0 < error(page, "own") < 1e-5 and error(page, "plain") > 1e-2
    assert "bad" not in page.get_attribute("#error-own", "class")
    assert "bad" in page.get_attribute("#error-plain", "class")
    assert "exact" in page.inner_text("#told") and "90°" in page.get_attribute("#curve", "aria-label")


def test_every_control_of_the_first_tab_changes_the_picture(page):
    for change, views in (
        (lambda: slide(page, "#angle", 5), ("#lifted", "#looking", "#curve", "#bars", "#told")),
        (lambda: page.check("#mirror"), ("#lifted", "#looking", "#curve", "#bars", "#told")),
        (lambda: slide(page, "#right", 4), ("#lifted", "#looking", "#curve", "#bars", "#told")),
        (lambda: slide(page, "#down", 0), ("#lifted", "#looking", "#curve", "#bars", "#told")),
        (lambda: page.click("#digits button:nth-child(3)"), ("#lifted", "#looking", "#curve", "#bars")),
        (lambda: page.select_option("#channel", "1"), ("#lifted",)),
        (lambda: page.select_option("#head", "4"), ("#looking", "#encoding", "#looks")),
        (lambda: page.select_option("#pose", "2"), ("#looking", "#encoding", "#looks")),
        (lambda: page.click("#looking canvas", position={"x": 40, "y": 60}), ("#looking",)),
        (lambda: page.press("#looking canvas", "ArrowDown"), ("#looking",)),
        (lambda: page.select_option("#layer", "1"), ("#looking", "#encoding", "#looks")),
    ):
        before = {view: seen(page, view) for view in views}
        change()
        assert not [view for view in views if seen(page, view) == before[view]]


def test_attention_by_content_changes_with_the_picture_and_by_position_does_not(page):
    for layer, count in (("0", 1), ("1", 6)):
        page.select_option("#layer", layer)
        told = set()
        for step in range(6):
            slide(page, "#angle", step)
            told.add(page.get_attribute("#looking canvas", "data-weights"))
        assert len(told) == count


def test_tabs_and_sliders_obey_the_keyboard(page):
    page.focus("#angle")
    page.keyboard.press("ArrowRight")
    assert page.inner_text("#angle-told") == "15°"
    page.focus("#tab-turn")
    page.keyboard.press("ArrowRight")
    assert page.is_visible("#panel-words") and not page.is_visible("#panel-turn")
    page.keyboard.press("Home")
    assert page.is_visible("#panel-turn") and not page.is_visible("#panel-words")
    nameless = "[...document.querySelectorAll('input,select')].filter(e => !e.labels.length).length"
    assert page.evaluate(nameless) == 0


def test_headers_of_tables_say_something(page):
    for tab in ("words", "weights", "layers"):
        page.click(f"#tab-{tab}")
        assert page.locator("th:visible").count() > 3 and page.locator("th:visible:empty").count() == 0


def test_a_shuffle_keeps_the_rows_without_an_encoding_only(page):
    page.click("#tab-words")
    page.click("#orders button:nth-child(4)")
    assert "Q, K, V, attention, output" in page.inner_text("#stayed")
    assert page.locator("#matrix-output tr.stayed").count() == 3
    assert page.inner_text("#matrix-embeddings tbody tr >> nth=2").split() == ["Love", "1.00", "0.00"]
    page.click("#encodings button:nth-child(2)")
    assert page.locator("#matrix-output tr.stayed").count() < 3 and page.locator("#matrix-added").count() == 1
    page.click("#encodings button:nth-child(4)")
    page.click("#orders button:nth-child(1)")
    before = seen(page, "#matrix-turned_query")
    slide(page, "#position", 7)
    assert seen(page, "#matrix-turned_query") != before
    assert page.inner_text("#position-told") == "7" and page.locator("#matrix-output tr.stayed").count() == 3
    before = seen(page, "#matrices")
    page.click("#encodings button:nth-child(3)")
    assert seen(page, "#matrices") != before and page.locator("#matrix-output tr.stayed").count() < 3


def test_entries_tell_how_they_are_computed(page):
    page.click("#tab-words")
    page.hover("#matrix-query tbody td >> nth=4")
    assert page.inner_text("#formula") == "Q of “all”, channel 1 = 1.00·1.00 + 1.00·1.00 = 2.00"
    page.focus("#matrix-attention tbody td >> nth=0")
    page.keyboard.press("ArrowDown")
    assert page.inner_text("#formula").startswith("attention of “conquers”, “Love” = exp(")


def test_every_control_of_the_weights_changes_the_picture(page):
    page.click("#tab-weights")
    for change, views in (
        (lambda: page.click("#permutations button:nth-child(2)"), ("#permuted", "#losses", "#order-told")),
        (lambda: page.select_option("#matrix", "4"), ("#permuted", "#entry")),
        (lambda: page.hover("#permuted tbody td >> nth=9"), ("#permuted", "#entry")),
        (lambda: page.click("#optimizers button:nth-child(2)"), ("#losses", "#losses-told")),
        (lambda: slide(page, "#step", 20), ("#units", "#start-losses", "#widths")),
        (lambda: page.click("#start-optimizers button:nth-child(2)"), ("#units", "#start-losses")),
        (lambda: slide(page, "#size", 12), ("#biases",)),
    ):
        before = {view: seen(page, view) for view in views}
        labels = {view: spoken(page, view) for view in views if page.locator(f"{view} canvas, svg{view}").count()}
        change()
        assert not [view for view in views if seen(page, view) == before[view]]
        assert not [view for view, label in labels.items() if spoken(page, view) == label]


def spoken(page, view):
    """What a screen reader says of a picture, or of those in it."""
    found = "e => [e, ...e.querySelectorAll('canvas')].map(c => c.ariaLabel).join()"
    return page.eval_on_selector(view, found)


def test_an_entry_is_followed_from_w_to_where_it_stands_and_back(page):
    page.click("#tab-weights")
    for table in (0, 1):
        page.focus(f"#permuted table >> nth={table} >> tbody td >> nth=0")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowRight")
        marked = page.locator("#permuted td.same")
        assert marked.count() == 2 and page.locator(f"#permuted table >> nth={table} >> td.same").count() == 1
        first, second = (marked.nth(i).get_attribute("aria-label") for i in (0, 1))
        assert first == second and page.inner_text("#entry").count(first) == 2


def test_an_order_that_mixes_heads_turns_red(page):
    page.click("#tab-weights")
    for order, bad in ((1, False), (4, True)):
        page.click(f"#permutations button:nth-child({order})")
        for card in ("key", "losses"):
            assert ("bad" in page.get_attribute(f"#error-{card}", "class")) is bad
            assert (error(page, card) > 1e-2) is bad and (error(page, card) < 1e-9) is not bad
        assert error(page, "wrong") > 0.1 < error(page, "data")
    assert "part" in page.get_attribute("#losses", "aria-label")


def test_units_stay_one_and_biases_do_nothing(page):
    page.click("#tab-weights")
    slide(page, "#step", 40)
    assert page.locator("#units .tile span").all_inner_texts() == ["one unit, 8 times", *["8 different units"] * 2]
    slide(page, "#size", 16)
    changes = [float(text) for text in page.locator("#biases tr td:last-child").all_inner_texts()]
    assert [change < 1e-12 for change in changes] == [False, True, True, True, False, True]


def test_layers_are_shown_and_the_one_that_breaks_the_group_is_named(page):
    page.click("#tab-layers")
    assert "every exact element of R4" in page.inner_text("#broken") and page.locator("#layers .bad").count() == 0
    for change in (
        lambda: page.select_option("#of-group", "2"),
        lambda: page.select_option("#depth", "2"),
        lambda: page.click("#models button:nth-child(2)"),
    ):
        before = seen(page, "#layers")
        change()
        assert seen(page, "#layers") != before
    assert "in lifting" in page.inner_text("#broken") and "lifting" in page.inner_text("#layers .first th")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1400])
def test_nothing_is_cut_off(page, width, scheme):
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=scheme)
    for tab in ("#tab-turn", "#tab-words", "#tab-weights", "#tab-layers"):
        page.click(tab)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
