#!/usr/bin/env python3
"""Compiles a folder that `ferrite freeze --browser` wrote to WebAssembly and runs it in node and in headless Chromium.

    run.py --net DIR [--name net] [--screenshot FILE] [--keep DIR] [--no-simd]

net_test.mjs tries the module NAME.js under node; index.html plays an oscillator through the net in an AudioWorklet and
compares the bits with those of the page's own thread. The outputs must also be those of the same file compiled for this
machine. Prints figures as JSON; the exit code is 0 if everything is right, and 77 if a program that this needs is
absent.
"""
import argparse
import functools
import gzip
import http.server
import json
import os
import queue
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
SKIPPED = 77


def run(arguments, **options):
    result = subprocess.run(arguments, capture_output=True, text=True, check=False, **options)
    if result.returncode:
        sys.exit(f"{' '.join(arguments)}\n{result.stdout}{result.stderr}exit code {result.returncode}")
    return result.stdout


def build(given, folder):
    """Copies the folder and makes NAME.wasm in it by the command that its README.md gives."""
    shutil.copytree(given.net, folder, dirs_exist_ok=True)
    with open(os.path.join(folder, "README.md"), encoding="utf-8") as file:
        command = re.search(r"^    (clang (.*\\\n)*.*)$", file.read(), re.MULTILINE)[1]
    words = [given.clang, *shlex.split(command.replace("\\\n", " "))[1:]]
    run([word for word in words if not (given.no_simd and word == "-msimd128")], cwd=folder)


def check_types(given, folder):
    """Compiles a use of NAME.d.ts if tsc is there. Returns what became of it."""
    if not shutil.which("tsc"):
        return "skipped: tsc is absent"
    with open(os.path.join(HERE, "types_test.ts"), encoding="utf-8") as source, \
            open(os.path.join(folder, "types_test.ts"), "w", encoding="utf-8") as file:
        file.write(source.read().replace("./net.js", f"./{given.name}.js"))
    run(["tsc", "--noEmit", "--strict", "--target", "es2022", "--moduleResolution", "node", "--lib", "es2022,dom",
         os.path.join(folder, "types_test.ts")])
    return "right"


def host_outputs(given):
    firmware = os.path.join(HERE, "..", "firmware", "run.py")
    command = [sys.executable, firmware, "--net", given.net, "--name", given.name, "--target", "host"]
    return json.loads(run(command))["outputs"]


class Pages(http.server.SimpleHTTPRequestHandler):
    """Serves the folder, takes the page's report, and answers /held.png when the report has come: until then Chromium
    waits with its picture."""

    reports = queue.Queue()
    reported = threading.Event()
    extensions_map = {".html": "text/html", ".js": "text/javascript", ".wasm": "application/wasm"}

    def do_GET(self):
        if self.path == "/held.png":
            Pages.reported.wait(60)
            self.send_error(404)
        elif self.path == "/?report":
            with open(os.path.join(self.directory, "index.html"), encoding="utf-8") as file:
                page = file.read().replace("<h1>", '<img src="held.png" hidden><h1>').encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(page)))
            self.end_headers()
            self.wfile.write(page)
        else:
            super().do_GET()

    def do_POST(self):
        Pages.reports.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(204)
        self.end_headers()
        Pages.reported.set()

    def log_message(self, *_):
        pass


def in_browser(given, folder):
    """Returns what the page reports."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Pages, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as profile:
        picture = os.path.abspath(given.screenshot) if given.screenshot else os.path.join(profile, "page.png")
        page = f"http://127.0.0.1:{server.server_address[1]}/?report"
        command = [given.chromium, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                   "--window-size=800,640", f"--user-data-dir={profile}/data", f"--screenshot={picture}", page]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
            try:
                _, errors = process.communicate(timeout=120)
            except subprocess.TimeoutExpired:
                process.kill()
                _, errors = process.communicate()
    server.shutdown()
    try:
        return Pages.reports.get_nowait()
    except queue.Empty:
        return {"good": False, "error": f"the page has reported nothing; Chromium said: {errors[-2000:]}"}


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--net", required=True)
    options.add_argument("--name", default="net")
    options.add_argument("--clang", default="clang-22")
    options.add_argument("--node", default="node")
    options.add_argument("--chromium", default="chromium")
    options.add_argument("--screenshot")
    options.add_argument("--keep", help="a folder for what was built")
    options.add_argument("--no-simd", action="store_true")
    given = options.parse_args()
    for program in (given.clang, given.node, given.chromium):
        if not shutil.which(program):
            print(f"skipped: {program} is absent")
            return SKIPPED
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.keep or temporary
        os.makedirs(folder, exist_ok=True)
        build(given, folder)
        with open(os.path.join(folder, given.name + ".wasm"), "rb") as file:
            wasm = file.read()
        node = [given.node, os.path.join(HERE, "net_test.mjs"), folder, given.name]
        run(node)
        result = {"wasm_bytes": len(wasm), "wasm_gzip_bytes": len(gzip.compress(wasm, 9))}
        result |= json.loads(run([*node, "--time"]))
        result["types"] = check_types(given, folder)
        result["equal_to_host"] = json.loads(run([*node, "--outputs"])) == host_outputs(given)
        result["browser"] = in_browser(given, folder)
    print(json.dumps(result, indent=1))
    return 0 if result["equal_to_host"] and result["browser"]["good"] else 1


if __name__ == "__main__":
    sys.exit(main())
