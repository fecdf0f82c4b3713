"""A headless Chromium, driven by its own protocol over a pair of pipes."""

import json
import os
import subprocess
import time


class Browser:
    """One browser with a profile and a folder for downloads of its own."""

    def __init__(self, folder):
        self.downloads = folder / "downloads"
        self.downloads.mkdir()
        to_read, self.write = os.pipe()
        self.read, to_write = os.pipe()
        # The browser reads from descriptor 3 and writes to 4.
        script = f"exec 3<&{to_read} 4>&{to_write}; exec chromium \"$@\""
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe"]
        options += [f"--user-data-dir={folder / 'profile'}", "about:blank"]
        self.process = subprocess.Popen(
            ["bash", "-c", script, "chromium", *options],
            pass_fds=(to_read, to_write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(to_write)
        self.buffer, self.number, self.events = b"", 0, []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        self.call(
            "Browser.setDownloadBehavior",
            behavior="allow",
            downloadPath=str(self.downloads),
            eventsEnabled=True,
            of_page=False,
        )

    def message(self):
        while b"\0" not in self.buffer:
            some = os.read(self.read, 1 << 16)
            assert some, "the browser is gone"
            self.buffer += some
        line, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(line)

    def call(self, method, of_page=True, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if of_page and hasattr(self, "session"):
            message["sessionId"] = self.session
        os.write(self.write, json.dumps(message).encode() + b"\0")
        while (answer := self.message()).get("id") != self.number:
            self.events.append(answer)
        assert "error" not in answer, answer
        return answer["result"]

    def wait_for(self, method, **want):
        """The parameters of the next event of this name that has these values."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            event = self.events.pop(0) if self.events else self.message()
            params = event.get("params", {})
            if event.get("method") == method and all(params.get(key) == value for key, value in want.items()):
                return params
        raise AssertionError(f"no {method}")

    def show(self, url):
        self.events.clear()
        result = self.call("Page.navigate", url=url)
        if "errorText" not in result:
            self.wait_for("Page.loadEventFired")
        return result

    def evaluate(self, expression):
        return self.call("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def close(self):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.read)
        os.close(self.write)
