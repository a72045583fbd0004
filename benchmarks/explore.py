"""From slider to picture in Chromium: the page of `gsa explore`, as one file and served.

    python benchmarks/explore.py          # needs Chromium and the package playwright

The angle is moved 60 times; a time ends when the browser has painted what belongs to the new angle. The file has 24
angles, the served page 72, whose answers it has not had before. Results go to outputs/benchmarks.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from _machine import add_record, save
from playwright.sync_api import Browser, sync_playwright

from gsa import explore
from gsa.saved import read

MOVE = """async () => {
    const slider = document.getElementById('angle'), steps = 1 + Number(slider.max), times = [];
    for (let i = 0; i < 60; i++) {
        slider.value = 1 + (i % (steps - 1));
        const angle = `${(360 / steps) * slider.value}°`, start = performance.now();
        slider.dispatchEvent(new Event('input'));
        while (document.body.dataset.drawn !== angle) await new Promise(requestAnimationFrame);
        await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
        times.push(performance.now() - start);
    }
    return times.sort((a, b) => a - b);
}"""


def row(browser: Browser, name: str, address: str) -> str:
    """A line of the table: median and 95th percentile in milliseconds."""
    page = browser.new_page()
    page.goto(address)
    page.wait_for_selector("body[data-drawn]")
    times = page.evaluate(MOVE)
    page.close()
    return f"| {name} | {times[30]:.0f} | {times[57]:.0f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_record(parser)
    parser.parse_args()
    lines = ["| page | median, ms | 95th percentile, ms |", "|---|---|---|"]
    command = [sys.executable, "-m", "gsa", "explore"]
    with sync_playwright() as started, tempfile.TemporaryDirectory() as folder:
        browser = started.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        file = Path(folder) / "page.html"
        file.write_text(explore.page(read("digits_gsa"), read("digits_gsa_z2"), steps=24), encoding="utf-8")
        lines.append(row(browser, "file, 12×12", file.as_uri()))
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            address = server.stdout.readline().split()[1]
            lines.append(row(browser, "served, 12×12", address))
            lines.append(row(browser, "served, 28×28", f"{address}&network=2"))
            server.terminate()
        browser.close()
    save("explore", " ".join(["python benchmarks/explore.py", *sys.argv[1:]]), "\n".join(lines))
    print("\n".join(lines))


if __name__ == "__main__":
    main()
