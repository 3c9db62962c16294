"""browser.py - a headless Chromium, told what to do over a pipe (the DevTools protocol; no library is needed).

    with Browser("/usr/bin/chromium") as browser:
        page = browser.page(1280, 800)
        page.open("http://localhost:8080/")
        page.until("document.title")
"""

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time


class Browser:
    def __init__(self, program):
        self.folder = tempfile.mkdtemp(prefix="toptd-browser-")
        near = [os.pipe(), os.pipe()]  # commands, replies
        far = [fcntl.fcntl(near[0][0], fcntl.F_DUPFD, 20), fcntl.fcntl(near[1][1], fcntl.F_DUPFD, 20)]
        self.commands, self.replies = near[0][1], near[1][0]
        self.process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{far[0]} 4>&{far[1]}', "-", program, "--headless=new", "--no-sandbox", "--disable-gpu",
             "--disable-dev-shm-usage", "--no-first-run", "--remote-debugging-pipe", f"--user-data-dir={self.folder}"],
            pass_fds=far, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for fd in (near[0][0], near[1][1], *far):
            os.close(fd)
        self.number, self.rest, self.events = 0, b"", []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.send("Browser.close")
            self.process.wait(10)
        except (OSError, TimeoutError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        os.close(self.commands)
        os.close(self.replies)
        for _ in range(20):
            shutil.rmtree(self.folder, ignore_errors=True)
            if not os.path.exists(self.folder):
                break
            time.sleep(0.1)

    def receive(self, seconds):
        """One message, or None."""
        end = time.monotonic() + seconds
        while b"\0" not in self.rest:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.replies], [], [], left)[0]:
                return None
            data = os.read(self.replies, 1 << 20)
            if not data:
                raise OSError("the browser has ended")
            self.rest += data
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def send(self, method, session=None, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.commands, data):]
        end = time.monotonic() + 60
        while time.monotonic() < end:
            reply = self.receive(end - time.monotonic())
            if reply and reply.get("id") == self.number:
                if "error" in reply:
                    raise OSError(f"{method}: {reply['error']}")
                return reply["result"]
            if reply and "method" in reply:
                self.events.append(reply)
        raise TimeoutError(method)

    def page(self, width, height, scheme="light"):
        return Page(self, width, height, scheme)


class Page:
    def __init__(self, browser, width, height, scheme):
        self.browser = browser
        target = browser.send("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "DOM"):
            self.send(domain + ".enable")
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500)
        self.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def send(self, method, **parameters):
        return self.browser.send(method, self.session, **parameters)

    def open(self, url):
        self.send("Page.bringToFront")  # one in the background is hidden, and slow
        self.send("Page.navigate", url="about:blank")
        self.send("Page.navigate", url=url)

    def run(self, script):
        """The value of an expression, or of its promise."""
        r = self.send("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in r:
            raise ValueError(f"{script}: {r['exceptionDetails']}")
        return r["result"].get("value")

    def until(self, script, seconds=60):
        """Its value once that is true; what it last was where it never is."""
        end, value = time.monotonic() + seconds, None
        while time.monotonic() < end:
            try:
                value = self.run(script)
            except ValueError as e:  # the page is not there yet
                value = f"{e}"[:0]
            if value:
                return value
            time.sleep(0.1)
        return value

    def key(self, name):
        code = {"Tab": 9, "Enter": 13, "ArrowRight": 39, "ArrowLeft": 37}[name]
        text = {"text": "\r"} if name == "Enter" else {}
        self.send("Input.dispatchKeyEvent", type="keyDown", key=name, code=name, windowsVirtualKeyCode=code, **text)
        self.send("Input.dispatchKeyEvent", type="keyUp", key=name, code=name, windowsVirtualKeyCode=code)

    def choose_file(self, selector, path):
        root = self.send("DOM.getDocument")["root"]["nodeId"]
        node = self.send("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.send("DOM.setFileInputFiles", files=[path], nodeId=node)

    def picture(self, path):
        """All of the page."""
        size = self.send("Page.getLayoutMetrics")["cssContentSize"]
        data = self.send("Page.captureScreenshot", captureBeyondViewport=True,
                         clip={"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1})["data"]
        with open(path, "wb") as f:
            f.write(base64.b64decode(data))

    def complaints(self):
        """What the console was told: exceptions, violations of the policy, errors; not the statuses of replies."""
        found = []
        for e in self.browser.events:
            p = e.get("params", {})
            if e.get("sessionId") != self.session:
                continue
            if e["method"] == "Runtime.exceptionThrown":
                d = p["exceptionDetails"]
                found.append(d.get("exception", {}).get("description") or d["text"])
            elif e["method"] == "Runtime.consoleAPICalled" and p["type"] in ("error", "warning", "assert"):
                found.append(str(p["args"]))
            elif e["method"] == "Log.entryAdded" and p["entry"]["source"] != "network" and p["entry"]["level"] in ("error", "warning"):
                found.append(p["entry"]["text"])
            elif e["method"] == "Log.entryAdded" and "Content Security Policy" in p["entry"]["text"]:
                found.append(p["entry"]["text"])
        return found
