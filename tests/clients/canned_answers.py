"""A server for tests of the web page: the page's files from the source tree, and answers that a real model gives
only by chance. The last question's first word chooses: markdown, think, tool, endless, script, busy, broken, cut.
"""
import http.server
import json
import pathlib
import threading
import time
import urllib.parse

PAGE = pathlib.Path(__file__).resolve().parent.parent.parent / "src/server/page"
TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}

MARKDOWN = """## Rotating a group

A *Hadamard* rotation spreads **outliers** over the whole group, so that one `scale` is enough[^1]. It costs \\(n \\log n\\) sums; see
the [paper](https://example.org/paper "title") or https://example.org/a_b_c.

1. Split the row into groups of 64
2. Rotate each group
   - signs first, ~~then sums~~ then the butterflies
   - the inverse is the same, by symmetry
3. Round to the nearest level

- [x] exact
- [ ] fast

| bits | levels | KL to bf16 | tok/s |
|:-----|-------:|-----------:|:-----:|
| 4    |     16 |      0.012 | 31.2  |
| 3    |      8 |      0.041 | 38.9  |
| 2    |      4 |      0.187 | `46.0` |

> Measure first.
> Then measure **again**.

```cpp
// In place; n is a power of two.
void Hadamard(float* x, size_t n) {
  for (size_t half = 1; half < n; half *= 2) {
    for (size_t i = 0; i < n; i += 2 * half) {
      for (size_t j = i; j < i + half; ++j) {
        const float a = x[j], b = x[j + half];
        x[j] = a + b;
        x[j + half] = a - b;  // "butterfly"
      }
    }
  }
}
```

```python
def error(weights, levels=8):
    \"\"\"Mean squared error of a group.\"\"\"
    return sum((w - nearest(w, levels)) ** 2 for w in weights) / len(weights)
```

***

That is all.
"""

SCRIPT = """<script>window.broken = 1</script><img src=x onerror="window.broken = 2">

**<b onclick="window.broken = 3">bold</b>** [click](javascript:window.broken=4) [data](data:text/html,<script>window.broken=5</script>)
![picture](https://outside.example/picture.png) <https://outside.example/"onmouseover="window.broken=6>

| <script>window.broken = 7</script> |
|---|
| <svg onload="window.broken = 8"> |

```html"><script>window.broken = 9</script>
<script>window.broken = 10</script>
```
"""

THOUGHT = "The user wants a sum.\n\n- 17 + 25: 7 + 5 is 12, carry one\n- 1 + 2 + 1 is 4\n\nSo it is **42**."

PROPS = {"version": "0.1.0", "model": "canned-3bit", "backend": "cpu/avx512", "context_length": 4096, "kv_tokens": 16384,
         "max_batch": 16, "max_tokens": -1, "has_chat_template": True, "thinking": "switch", "tools": True,
         "default_sampling": {"temperature": 0.7, "top_p": 0.9, "top_k": 20, "min_p": 0, "repetition_penalty": 1}}

METRICS = """# HELP turboquant_kv_pages Pages of the KV cache
# TYPE turboquant_kv_pages gauge
turboquant_kv_pages 256
turboquant_kv_pages_free 231
turboquant_kv_page_tokens 64
turboquant_kv_bytes_per_token 57344
turboquant_prefix_cache_pages 80
turboquant_requests_running 1
turboquant_requests_waiting 0
turboquant_prompt_tokens_total 5310
turboquant_prompt_tokens_cached_total 3904
process_resident_memory_bytes 3.48e+09
turboquant_system_memory_bytes 1.68e+10
turboquant_answers_total{outcome="stop"} 7
"""


def words(text):
    """The text in pieces of the size of tokens, which cut it anywhere."""
    return [text[i:i + 5] for i in range(0, len(text), 5)]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, status, kind, body, headers=()):
        self.send_response(status)
        for name, value in [("Content-Type", kind), ("Content-Length", str(len(body))), *headers]:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def reply_json(self, status, value, headers=()):
        self.reply(status, "application/json", json.dumps(value).encode(), headers)

    def allowed(self):
        key = self.server.key
        if key is None or self.headers.get("Authorization") == f"Bearer {key}":
            return True
        self.reply_json(401, {"error": {"message": "no key"}})
        return False

    def do_GET(self):
        path = self.path.split("?")[0]
        name = "index.html" if path == "/" else path.removeprefix("/page/")
        if path == "/" or path.startswith("/page/"):
            file = PAGE / pathlib.PurePath(name).name
            if not file.is_file():
                return self.reply_json(404, {"error": {"message": "none"}})
            return self.reply(200, TYPES[file.suffix], file.read_bytes(), [("Content-Security-Policy", self.server.policy)])
        if not self.allowed():
            return None
        if path == "/props":
            model = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query).get("model", [])
            return self.reply_json(200, PROPS | self.server.props | ({"model": model[0]} if model else {}))
        if path == "/metrics":
            return self.reply(200, "text/plain", METRICS.encode())
        return self.reply_json(404, {"error": {"message": "none"}})

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not self.allowed():
            return
        self.server.requests.append(request)
        last = request["messages"][-1]
        kind = "told" if last["role"] == "tool" else last["content"].split()[0]
        if kind == "busy":
            return self.reply_json(429, {"error": {"message": "the queue is full"}}, [("Retry-After", "2")])
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        try:
            self.stream(kind, request)
        except OSError:
            self.server.left += 1  # the client

    def event(self, value):
        self.wfile.write(b"data: " + (value if isinstance(value, bytes) else json.dumps(value).encode()) + b"\n\n")

    def delta(self, **fields):
        self.event({"choices": [{"index": 0, "delta": fields, "finish_reason": None}]})
        time.sleep(self.server.delay)

    def stream(self, kind, request):
        self.delta(role="assistant", content="")
        texts = {"markdown": MARKDOWN, "script": SCRIPT, "told": "It is sunny in Oslo, **20 degrees**.", "think": "It is **42**."}
        finish = "stop"
        tokens = 0
        if kind == "think":
            for piece in words(THOUGHT):
                self.delta(reasoning_content=piece)
        if kind == "tool":
            finish = "tool_calls"
            self.delta(tool_calls=[{"index": 0, "id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": ""}}])
            for piece in words('{"city": "Oslo", "days": 3}'):
                self.delta(tool_calls=[{"index": 0, "function": {"arguments": piece}}])
        while kind == "endless":
            tokens += 1
            self.delta(content=f"word {tokens} ")
        for piece in words(texts.get(kind, "" if kind == "tool" else f"You said: {request['messages'][-1]['content']}")):
            tokens += 1
            self.delta(content=piece)
        if kind == "broken":
            return self.event({"error": {"message": "the device is gone"}})
        if kind == "cut":
            return None
        self.event({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
        self.event({"choices": [], "usage": {"prompt_tokens": 1180, "completion_tokens": tokens + 30,
                                             "prompt_tokens_details": {"cached_tokens": 1024}}})
        return self.event(b"[DONE]")


class CannedServer(http.server.ThreadingHTTPServer):
    """Listens on a free port; `with` starts and ends it."""
    daemon_threads = True

    def __init__(self, policy, key=None, delay=0.002, props=None, port=0):
        super().__init__(("127.0.0.1", port), Handler)
        self.policy, self.key, self.delay, self.props = policy, key, delay, props or {}
        self.requests, self.left = [], 0

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"

    def __enter__(self):
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()
