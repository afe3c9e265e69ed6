#!/usr/bin/env python3
"""Drives the web page of a running server in a headless Chromium (apt install chromium; pip install playwright).

  turboquant serve --model demo --port 8080 &
  tests/clients/web_page.py http://127.0.0.1:8080 [--screenshots FOLDER]

First with the server's model, then with canned answers (canned_answers.py) that a model gives only by chance.
"""
import argparse
import json
import pathlib
import shutil
import sys
import time
import urllib.request

from canned_answers import CannedServer
from playwright.sync_api import sync_playwright

FAILED = []
LAST = "article.assistant:last-child"

# Markdown, and what becomes of it.
RENDERED = [
    ("a *b* **c** ***d*** ~~e~~ `f*g*`", "<p>a <em>b</em> <strong>c</strong> <em><strong>d</strong></em> <del>e</del> <code>f*g*</code></p>"),
    ("snake_case_name and 2 * 3 * 4", "<p>snake_case_name and 2 * 3 * 4</p>"),
    ("**a *b* c** *open **both", "<p><strong>a <em>b</em> c</strong> *open **both</p>"),
    ("one\ntwo<br>three  \nfour", "<p>one<br>two<br>three<br>four</p>"),
    ("``a`b`` `open", "<p><code>a`b</code> `open</p>"),
    ("\\*no\\* &lt;b&gt; <b>x</b>", "<p>*no* &lt;b&gt; &lt;b&gt;x&lt;/b&gt;</p>"),
    ("# A #\n### B", "<h3>A</h3><h5>B</h5>"),
    ("- a\n- b\n  - c\n\n    d\n- e", "<ul><li>a</li><li>b<ul><li><p>c</p><p>d</p></li></ul></li><li>e</li></ul>"),
    ("3. a\n   more\n4. b", '<ol start="3"><li>a<br>more</li><li>b</li></ol>'),
    ("1. a\n  - b", "<ol><li>a<ul><li>b</li></ul></li></ol>"),
    ("- a\n\n- b", '<ul class="loose"><li><p>a</p></li><li><p>b</p></li></ul>'),
    ("text 1986. No list\n2. neither", "<p>text 1986. No list<br>2. neither</p>"),
    ("> a\n> > b", "<blockquote><p>a</p><blockquote><p>b</p></blockquote></blockquote>"),
    ("***", "<hr>"),
    ("$$\na_1 + b_1\n$$", '<pre class="formula">a_1 + b_1</pre>'),
    ("x \\(a_1*b*c\\) y", '<p>x <span class="formula">a_1*b*c</span> y</p>'),
]
LINKS = [
    ("[a](https://a.example/x_(y))", "https://a.example/x_(y)"),
    ("see https://a.example/b_c_d.", "https://a.example/b_c_d"),
    ("<https://a.example>", "https://a.example/"),
    ("![p](https://a.example/p.png)", "https://a.example/p.png"),
    ("[a](javascript:alert(1))", None),
    ("[a]( JaVaScRiPt:alert(1))", None),
    ("[a](data:text/html,x)", None),
    ("[a](/v1/models)", None),
]
# Each is some 100 kB.
HOSTILE = ["*" * 100000, "[" * 100000, "](x " * 25000, '[](x "' * 16000, "`" * 99 + "a" + "``b" * 33000, "*a _b " * 16000, "> " * 50000,
           "- " * 50000, "|" * 50000 + "\n|" + "-|" * 25000, "\\(" * 50000, "$$" * 50000, "a" * 100000, "  " * 50000 + "-", "<" * 100000,
           "~~a" * 33000, "- a\n" * 25000, "#" * 100000, "***a***" * 14000, "https://" * 12000, "\n" * 100000, "**a" * 33000]


def check(name, condition, detail=""):
    print(("ok    " if condition else "FAIL  ") + name + (f": {detail}" if detail != "" else ""))
    if not condition:
        FAILED.append(name)


class Page:
    """A page of its own, which records what it says and where it turns to."""

    def __init__(self, browser, url, folder=None, scheme="light", width=1280, height=860, storage=None, touch=False):
        self.context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": height}, has_touch=touch,
                                           is_mobile=touch, storage_state=storage)
        self.page = self.context.new_page()
        self.page.set_default_timeout(120000)
        self.folder = folder
        self.outside, self.complaints = [], []
        self.page.on("request", lambda request: None if request.url.startswith((url, "blob:")) else self.outside.append(request.url))
        self.page.on("console", lambda message: self.complaints.append(message.text) if message.type in ("error", "warning") else None)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.goto(url, wait_until="load")

    def ask(self, text, wait=True):
        self.page.fill("#question", text)
        self.page.press("#question", "Enter")
        if wait:
            self.finished()

    def finished(self):
        self.page.wait_for_selector(f"{LAST}[aria-busy=false]")

    def last(self, part):
        return self.page.locator(f"{LAST} {part}")

    def show(self, name):
        if self.folder is not None:
            self.page.wait_for_timeout(250)  # what moves has moved
            self.page.screenshot(path=str(self.folder / f"{name}.png"))

    def clean(self, name, expected=()):
        left = [text for text in self.complaints if not any(part in text for part in expected)]
        check(f"{name}: no request leaves the server", self.outside == [], self.outside or "")
        check(f"{name}: the console is silent", left == [], left or "")


def try_model(browser, url, folder):
    view = Page(browser, url, folder)
    page = view.page
    page.wait_for_selector(".welcome h2")
    model = json.load(urllib.request.urlopen(url + "/props"))["model"]
    check("shows the model", page.inner_text(".welcome h2") == model, model)
    view.show("model-welcome")
    page.evaluate("""() => { window.seen = new Set(); new MutationObserver(() => {
        const text = document.querySelector('article.assistant .markdown:not(.thoughts *)'); if (text) window.seen.add(text.textContent.length);
      }).observe(document.querySelector('#transcript'), {subtree: true, childList: true, characterData: true}); }""")
    view.ask("Tell me a story about a fox named Mia who finds a lamp in the forest.")
    text = view.last("> .markdown").inner_text()
    check("the model answers", "Mia" in text, text[:60])
    check("the answer streams", page.evaluate("window.seen.size") > 3, page.evaluate("window.seen.size"))
    stats = view.last(".stats").inner_text()
    check("tokens and speed", "tok/s" in stats and "prompt tokens" in stats and "~" not in stats, stats)
    view.ask("What is the capital of Japan?")
    check("a second question", "Tokyo" in view.last("> .markdown").inner_text(), view.last("> .markdown").inner_text())
    check("its prompt comes from the cache", "cached" in view.last(".stats").inner_text(), view.last(".stats").inner_text())
    page.wait_for_function("() => document.querySelectorAll('.gauge').length === 3")
    check("cache and memory", "of" in page.inner_text(".gauge:nth-of-type(1) .value"), page.inner_text("#server").replace("\n", " "))
    check("the context", "/" in page.inner_text("#context"), page.inner_text("#context"))
    view.show("model-answer")

    page.click("#open-settings")
    page.fill("#set-tools", json.dumps([{"type": "function", "function": {
        "name": "get_weather", "description": "The weather of a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}]))
    page.fill("#set-max_tokens", "200")
    page.keyboard.press("Escape")
    page.click("#new-chat")
    view.ask("What is the weather in Oslo?")
    check("a tool call of the model", view.last(".call .name").inner_text() == "get_weather" and
          "Oslo" in view.last(".call pre").first.inner_text())
    view.last(".call textarea").fill('{"weather": "sunny", "degrees": 20}')
    view.last(".call .button").click()
    page.wait_for_selector(".call .given")
    view.finished()
    check("its result is answered", "20" in view.last("> .markdown").inner_text(), view.last("> .markdown").inner_text())
    view.clean("model")
    view.context.close()


def try_markdown(browser, server, folder):
    for scheme, width, height in (("light", 1280, 860), ("dark", 1280, 860), ("light", 390, 844)):
        name = "phone" if width < 500 else scheme
        view = Page(browser, server.url, folder, scheme, width, height, touch=width < 500)
        page = view.page
        view.ask("markdown please")
        view.show(f"{name}-end")
        check(f"{name}: no sideways scrolling", page.evaluate("document.scrollingElement.scrollWidth <= innerWidth"))
        page.evaluate("document.querySelector('#scroll').scrollTop = 0")
        view.show(f"{name}-answer")
        if width > 500:
            view.context.close()
            continue
        page.click("#open-sidebar")
        view.show("phone-list")
        check("phone: the list opens over the page", page.is_visible(".chats .open") and page.evaluate("document.querySelector('main').inert"))
        page.keyboard.press("Escape")
        page.wait_for_selector("#sidebar", state="hidden")
        view.context.close()

    view = Page(browser, server.url)
    page = view.page
    view.ask("markdown please")
    answer = view.last("> .markdown")
    for part, number in (("h4", 1), ("strong", 2), ("ol > li", 3), ("ol ul > li", 2), ("tbody tr", 3), ("td.right", 6), ("blockquote", 1),
                         (".code", 2), ("del", 1), ("hr", 1), ("a", 2), ("input[type=checkbox]", 2)):
        check(f"markdown: {part}", answer.locator(part).count() == number, answer.locator(part).count())
    view.context.grant_permissions(["clipboard-read", "clipboard-write"])
    answer.locator(".copy").first.click()
    page.wait_for_timeout(100)
    check("code is copied", page.evaluate("navigator.clipboard.readText()").startswith("// In place; n is a power of two.\nvoid Hadamard("))
    view.last("button[aria-label='The text as it came']").click()
    check("the text as it came", "| bits | levels |" in view.last(".source").inner_text())

    render = """async (text) => { const {MarkdownView} = await import('/page/markdown.js'); const view = new MarkdownView();
        for (let i = 1; i < text.length; ++i) view.update(text.slice(0, i)); view.update(text); return view.root.innerHTML; }"""
    for text, expected in RENDERED:
        found = page.evaluate(render, text)
        check(f"markdown {text!r}", found == expected, "" if found == expected else found)
    link = """async (text) => { const {MarkdownView} = await import('/page/markdown.js'); const view = new MarkdownView(); view.update(text);
        return view.root.querySelector('a')?.href ?? null; }"""
    for text, expected in LINKS:
        check(f"link {text!r}", page.evaluate(link, text) == expected, page.evaluate(link, text) or "none")
    timed = """async (text) => { const {MarkdownView} = await import('/page/markdown.js'); const start = performance.now();
        new MarkdownView().update(text); return performance.now() - start; }"""
    slowest = max((page.evaluate(timed, text), text[:12]) for text in HOSTILE)
    check("hostile texts take no time", slowest[0] < 2000, f"at most {slowest[0]:.0f} ms ({slowest[1]!r})")
    pieces = """async (text) => { const {eventData} = await import('/page/sse.js'); const bytes = new TextEncoder().encode(text); const found = [];
        for (let cut = 1; cut < bytes.length; ++cut) {
          const stream = new ReadableStream({start(out) { out.enqueue(bytes.slice(0, cut)); out.enqueue(bytes.slice(cut)); out.close(); }});
          const data = []; for await (const one of eventData(stream)) data.push(one);
          found.push(JSON.stringify(data)); }
        return [...new Set(found)]; }"""
    found = page.evaluate(pieces, "data: {\u00e9\u20ac}\r\n\r\n: note\nevent: x\ndata:a\ndata: b\n\ndata: [DONE]\n\n")
    check("events, however they are cut", found == ['["{\u00e9\u20ac}","a\\nb","[DONE]"]'], found)
    view.clean("markdown")
    view.context.close()


def try_script(browser, server):
    view = Page(browser, server.url)
    page = view.page
    view.ask("script <img src=x onerror=window.broken=11>")
    page.wait_for_timeout(300)
    check("no script of a text runs", page.evaluate("window.broken") is None, page.evaluate("window.broken") or "")
    check("markup of a text is text", page.locator("#transcript :is(img, script, b)").count() == 0)
    check("only safe links", all(href.startswith("https://") for href in page.eval_on_selector_all("#transcript a", "all => all.map((a) => a.href)")))
    blocked = page.evaluate("() => { try { document.body.innerHTML = '<b>x</b>'; return false; } catch { return true; } }")
    check("the browser itself refuses markup", blocked)
    view.complaints = [text for text in view.complaints if "TrustedHTML" not in text]
    view.clean("script")
    view.context.close()


def try_answers(browser, server, folder):
    view = Page(browser, server.url, folder)
    page = view.page
    view.ask("think about 17 + 25")
    check("thoughts are folded", not view.last(".thoughts .markdown").is_visible(), view.last(".thoughts summary").inner_text())
    view.last(".thoughts summary").click()
    check("and open", "carry one" in view.last(".thoughts .markdown").inner_text())
    view.ask("tool for Oslo")
    check("a call is shown", view.last(".call .name").inner_text() == "get_weather" and '"city": "Oslo"' in view.last(".call pre").first.inner_text())
    view.show("call")
    view.last(".call textarea").fill("Sunny")
    view.last(".call .button").click()
    page.wait_for_selector(".call .given")
    view.finished()
    said = server.requests[-1]["messages"]
    check("the request has the call and its result", said[-1] == {"role": "tool", "tool_call_id": "call_1", "content": "Sunny"} and
          said[-2]["tool_calls"][0]["function"]["arguments"] == '{"city": "Oslo", "days": 3}')
    check("and the thoughts", "carry one" in said[1]["reasoning_content"])

    view.ask("endless", wait=False)
    page.wait_for_selector(f"{LAST} .markdown:has-text('word 20')")
    left = server.left
    view.show("streaming")
    page.click("#stop")
    view.finished()
    deadline = time.time() + 20
    while server.left == left and time.time() < deadline:
        time.sleep(0.05)
    check("stop ends the answer at the server", server.left == left + 1)
    check("what had come is kept", "word 20" in view.last("> .markdown").inner_text() and "Stopped" in view.last(".notice").inner_text())
    view.ask("endless", wait=False)
    page.wait_for_selector(f"{LAST} .markdown:has-text('word 3')")
    page.keyboard.press("Escape")
    view.finished()
    check("Escape stops", "Stopped" in view.last(".notice").inner_text())

    view.ask("busy now")
    check("a full queue", "the queue is full. Try again in 2 s." in view.last(".notice").inner_text(), view.last(".notice").inner_text())
    view.show("failed")
    for kind, text in (("broken", "the device is gone"), ("cut", "The connection ended")):
        view.ask(f"{kind} off")
        check(f"an answer that breaks off ({kind})", text in view.last(".notice").inner_text() and "You said" in view.last("> .markdown").inner_text())
    before = page.locator("article").count()
    number = len(server.requests)
    view.last(".notice .button").click()
    page.wait_for_timeout(300)
    view.finished()
    check("retry asks the same again", page.locator("article").count() == before and len(server.requests) == number + 1 and
          server.requests[-1]["messages"] == server.requests[-2]["messages"])
    page.focus("#question")
    page.keyboard.press("ArrowUp")
    check("the last question can be changed", page.input_value("#question") == "cut off")
    view.ask("hello there")
    check("and replaces it", page.locator("article").count() == before and "You said: hello there" in view.last("> .markdown").inner_text())

    page.keyboard.press("Alt+n")
    view.ask("second talk")
    check("two conversations", page.locator("#chats li").count() == 2, page.inner_text("#chats li.current .name"))
    page.keyboard.press("Alt+ArrowDown")
    check("Alt+Down goes to the other", page.inner_text("#chats li.current .name") == "think about 17 + 25")
    page.reload()
    page.wait_for_selector("article")
    check("a reload keeps them", page.locator("#chats li").count() == 2 and page.inner_text("#title") == "think about 17 + 25" and
          page.locator("article").count() == before)
    page.hover("#chats li:nth-child(2)")
    page.locator("#chats li:nth-child(2) .icon").click()
    page.click("#confirm-yes")
    page.wait_for_function("() => document.querySelectorAll('#chats li').length === 1")
    check("one is deleted", page.evaluate("Object.keys(localStorage).filter((name) => name.startsWith('turboquant.chat.')).length") == 1)
    view.clean("answers", expected=("429",))
    view.context.close()


def try_settings(browser, server, folder):
    view = Page(browser, server.url, folder)
    page = view.page
    page.wait_for_selector(".gauge")
    page.keyboard.press("Alt+,")
    for name, value in (("system", "Be brief."), ("temperature", "0.3"), ("top_p", "0.8"), ("max_tokens", "99"), ("seed", "7")):
        page.fill(f"#set-{name}", value)
    page.select_option("#set-thinking", "off")
    page.fill("#set-tools", "[{]")
    check("broken tools are refused", page.get_attribute("#set-tools", "aria-invalid") == "true", page.inner_text("#tools-note"))
    page.fill("#set-tools", '[{"type": "function", "function": {"name": "f"}}]')
    page.fill("#set-top_p", "8")
    check("a number out of range is refused", page.get_attribute("#set-top_p", "aria-invalid") == "true")
    page.select_option("#set-theme", "dark")
    view.show("settings")
    page.keyboard.press("Escape")
    view.ask("hello")
    request = {name: value for name, value in server.requests[-1].items() if name != "messages"}
    check("settings are in the request", request == {
        "stream": True, "stream_options": {"include_usage": True}, "temperature": 0.3, "top_p": 0.8, "max_tokens": 99, "seed": 7,
        "reasoning_effort": "none", "tools": [{"type": "function", "function": {"name": "f"}}]}, request)
    check("the system prompt too", server.requests[-1]["messages"][0] == {"role": "system", "content": "Be brief."})
    page.reload()
    page.wait_for_selector("article")
    check("they outlive a reload", page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "dark")
    view.clean("settings")
    view.context.close()


def try_key(browser, policy):
    with CannedServer(policy, key="secret") as server:
        view = Page(browser, server.url)
        page = view.page
        page.wait_for_selector("#banner .button")
        check("a key is asked for", "API key" in page.inner_text("#banner"), page.inner_text("#banner"))
        page.click("#banner .button")
        page.keyboard.type("secret")
        page.keyboard.press("Escape")
        page.wait_for_selector(".gauge")
        check("with the key it works", page.is_hidden("#banner"))
        view.ask("hello")
        check("answers too", "You said: hello" in view.last("> .markdown").inner_text())
        view.clean("key", expected=("401",))
        view.context.close()


def try_models(browser, policy):
    with CannedServer(policy, props={"model": "small", "models": ["small", "org/large"]}) as server:
        view = Page(browser, server.url)
        page = view.page
        page.wait_for_selector("#server select")
        check("the models to choose from", page.eval_on_selector_all("#server option", "all => all.map((o) => o.value)") == ["small", "org/large"])
        view.ask("markdown please")
        check("the server's first answers", "model" not in server.requests[-1])
        page.select_option("#server select", "org/large")
        page.wait_for_function("() => document.querySelector('#model').textContent === 'org/large'")
        view.ask("markdown please")
        check("the chosen model answers", server.requests[-1].get("model") == "org/large")
        page.reload()
        page.wait_for_function("() => document.querySelector('#model').textContent === 'org/large'")
        check("the choice is kept", page.input_value("#server select") == "org/large")
        server.props = {"model": "other", "models": ["other", "small"]}
        page.reload()
        page.wait_for_function("() => document.querySelector('#model').textContent === 'other'")
        check("until the server has no such model", page.input_value("#server select") == "other")
        view.clean("models")
        view.context.close()


def try_access(browser, server):
    """What a screen reader and a keyboard have to go by."""
    view = Page(browser, server.url)
    page = view.page
    view.ask("tool and markdown")
    view.ask("markdown")
    nameless = page.evaluate("""() => [...document.querySelectorAll('button, input, textarea, select')].filter((node) =>
        !node.closest('dialog:not([open])') && !node.ariaLabel && !node.textContent.trim() && !node.closest('label')).map((node) => node.outerHTML)""")
    check("every control has a name", nameless == [], nameless or "")
    check("the log is busy while it grows alone", page.get_attribute(LAST, "aria-busy") == "false" and page.get_attribute("#transcript", "role") == "log")
    check("the end is announced", "Answer complete" in page.inner_text("#announcer"), page.inner_text("#announcer"))
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("/")
    check("/ goes to the question", page.evaluate("document.activeElement.id") == "question")
    check("the first stop skips to the question", page.evaluate("document.querySelector('a, button, input, textarea').className") == "skip")
    contrast = page.evaluate("""() => { const lum = (text) => { const c = text.match(/[\\d.]+/g).slice(0, 3).map((v) => v / 255)
        .map((v) => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4); return .2126 * c[0] + .7152 * c[1] + .0722 * c[2]; };
      const root = document.documentElement, probe = document.createElement('p'); document.body.append(probe); const low = [];
      for (const theme of ['light', 'dark']) { root.dataset.theme = theme;
        for (const [front, back] of [['text', 'page'], ['dim', 'page'], ['dim', 'side'], ['dim', 'sunken'], ['accent', 'page'], ['on-accent', 'accent'],
          ['accent', 'soft'], ['danger', 'danger-soft'], ['code-comment', 'sunken'], ['code-literal', 'sunken'], ['code-number', 'sunken'], ['code-word', 'sunken']]) {
          probe.style.color = `var(--${front})`; probe.style.backgroundColor = `var(--${back})`; const style = getComputedStyle(probe);
          const [a, b] = [lum(style.color), lum(style.backgroundColor)].sort((x, y) => y - x); const ratio = (a + .05) / (b + .05);
          if (ratio < 4.5) low.push(`${theme} ${front} on ${back}: ${ratio.toFixed(2)}`); } }
      probe.remove(); delete root.dataset.theme; return low; }""")
    check("contrast is at least 4.5", contrast == [], contrast or "")
    view.clean("access")
    view.context.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url", nargs="?", default="http://127.0.0.1:8080")
    parser.add_argument("--screenshots", type=pathlib.Path, help="folder for pictures of what was seen")
    parser.add_argument("--chromium", default=shutil.which("chromium"), help="the browser; default: the system's, else playwright's")
    flags = parser.parse_args()
    if flags.screenshots:
        flags.screenshots.mkdir(parents=True, exist_ok=True)
    with urllib.request.urlopen(urllib.request.Request(flags.url, headers={"Accept": "text/html"})) as reply:
        policy = reply.headers["Content-Security-Policy"]
    with CannedServer(policy) as server, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=flags.chromium, args=["--no-sandbox"])
        try_model(browser, flags.url, flags.screenshots)
        try_markdown(browser, server, flags.screenshots)
        try_script(browser, server)
        try_answers(browser, server, flags.screenshots)
        try_settings(browser, server, flags.screenshots)
        try_models(browser, policy)
        try_key(browser, policy)
        try_access(browser, server)
        browser.close()
    print(f"{len(FAILED)} failed" if FAILED else "all passed")
    return 1 if FAILED else 0


if __name__ == "__main__":
    sys.exit(main())
