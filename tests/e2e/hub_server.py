#!/usr/bin/env python3
"""A small Hub for tests: one repository, with the faults that its first path element asks for.

  hub_server.py FOLDER      serves the files of FOLDER as "org/model"; prints its port

HF_ENDPOINT=http://127.0.0.1:PORT/FAULT with FAULT one of
  none      all is well; large files redirect to another path
  cut       every connection ends after 100,000 bytes of a body
  busy      the first request of everything is a 429 with Retry-After
  down      the first request of everything is a 503
  changed   contents differ from their hashes
  short     files end early
  half      503 for the second half of large files
  gated     401 without the token "secret"
  huge      the list says that weights are 2^45 bytes long
  late      503 for all files whose number is above 30 ("model-00031-of-...")
  trickle   20,000 bytes of a body every 0.1 s
  hop       redirects three times, 301, 307 and 308, without a host
  loop      redirects to itself
  leak      redirects go to another host name; 400 if the token comes along
  slow      every answer, and every new connection, takes 0.1 s more
  whole     ranges are not known: every answer is the whole file
"""

import collections
import hashlib
import http.server
import json
import pathlib
import re
import sys
import threading
import time
import urllib.parse

FOLDER = pathlib.Path(sys.argv[1])
COMMIT = "c0ffee" + "0" * 34
LARGE = 5000
counts = collections.Counter()
lock = threading.Lock()


def listing(fault):
    files = []
    for path in sorted(p for p in FOLDER.rglob("*") if p.is_file()):
        content = path.read_bytes()
        blob = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
        entry = {"rfilename": path.relative_to(FOLDER).as_posix(), "size": len(content), "blobId": blob}
        if len(content) > LARGE:
            entry["lfs"] = {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 134}
        if fault == "huge" and "lfs" in entry:
            entry["lfs"]["size"] = entry["size"] = 2**45
        files.append(entry)
    return json.dumps({"id": "org/model", "sha": COMMIT, "siblings": files}).encode()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    known = False  # this connection had a request before

    def log_message(self, *_):
        pass

    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path.startswith("/slow/"):
            time.sleep(0.1 if self.known else 0.2)
            self.known = True
        path = urllib.parse.unquote(urllib.parse.urlsplit(self.path).path)
        _, fault, rest = path.split("/", 2)
        with lock:
            request = (path, self.headers.get("Range"))
            counts[request] += 1
            turn = counts[request]
        token = self.headers.get("Authorization")
        if fault == "busy" and turn == 1:
            return self.answer(429, Retry_After="0.05")
        if fault == "down" and turn == 1:
            return self.answer(503)
        if fault == "gated" and token != "Bearer secret":
            return self.answer(401)
        if rest.startswith("api/"):
            known = rest == "api/models/org/model/revision/main"
            return self.answer(200, listing(fault)) if known else self.answer(404)
        hop = re.match(r"hop(\d)/", rest)
        if hop:
            there = rest[5:] if hop[1] == "2" else f"hop{int(hop[1]) + 1}/{rest[5:]}"
            return self.answer(307 if hop[1] == "1" else 308, Location=f"/{fault}/{urllib.parse.quote(there)}")
        if rest.startswith("storage/"):
            if fault == "leak" and token is not None:
                return self.answer(400)
            return self.content(fault, FOLDER / rest[len("storage/"):])
        prefix = f"org/model/resolve/{COMMIT}/"
        name = rest[len(prefix):]
        if not rest.startswith(prefix) or not (FOLDER / name).is_file():
            return self.answer(404)
        number = re.match(r"model-(\d+)-of-", name)
        if fault == "late" and number and int(number[1]) > 30:
            return self.answer(503)
        if fault == "hop":
            return self.answer(301, Location=f"/hop/hop1/storage/{urllib.parse.quote(name)}")
        if fault == "loop":
            return self.answer(302, Location=self.path)
        if (FOLDER / name).stat().st_size > LARGE:
            host = self.headers["Host"]
            if fault == "leak":
                host = host.replace("127.0.0.1", "localhost")
            return self.answer(302, Location=f"http://{host}/{fault}/storage/{urllib.parse.quote(name)}")
        return self.content(fault, FOLDER / name)

    def content(self, fault, path):
        body = path.read_bytes()
        if fault == "changed":
            body = bytes(255 - b for b in body)
        if fault == "short":
            body = body[: len(body) // 2]
        wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", "")) if fault != "whole" else None
        status, headers = 200, {}
        if wanted:
            begin, end = int(wanted[1]), min(int(wanted[2]) + 1, len(body))
            if begin >= len(body):
                return self.answer(416)
            if fault == "half" and len(body) > LARGE and begin >= len(body) // 2:
                return self.answer(503)
            headers["Content_Range"] = f"bytes {begin}-{end - 1}/{len(body)}"
            status, body = 206, body[begin:end]
        if fault == "trickle" and len(body) > LARGE:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            for at in range(0, len(body), 20_000):
                self.wfile.write(body[at : at + 20_000])
                time.sleep(0.1)
            return None
        if fault == "cut" and len(body) > 100_000:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[:100_000])
            self.close_connection = True
            return None
        return self.answer(status, body, **headers)


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128  # connections that come at once

    def handle_error(self, *_):
        pass  # a client that has seen enough


server = Server(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
