#!/usr/bin/env python3
"""Real coding agents and SDKs take one scripted turn with a tool each, against `turboquant serve --replay`:
the prompt, a call of their shell (or of a function), its result, a last text. Nothing but loopback is needed.

  tests/clients/agents.py                                    # every client that is found
  tests/clients/agents.py --only codex,qwen --bin ~/clients  # those, also from ~/clients/*/node_modules/.bin

How each client is set up stands in docs/agents.md. Programs: `claude`, `codex`, `opencode`, `qwen`, and `node` with the
packages openai and @anthropic-ai/sdk, and python with openai and anthropic (--python PATH).
"""
import argparse
import glob
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = pathlib.Path(__file__).resolve().parent
PROMPT = "TQ-STEP-ONE: run the command that writes made.txt, then say what it printed."
# Prints what the call itself does not hold.
COMMAND = "printf 'TQ-%s-TWO\\n' STEP | tee made.txt"
RESULT = "TQ-STEP-TWO"
FINAL = "TQ-FINAL: the file is written."
NAME = "replayed"


def call(name, arguments):
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


def replay(said):
    return {"answers": [{"when": "TQ-STEP-ONE", "say": "I run it.\n" + said},
                        {"when": RESULT, "say": FINAL},
                        {"say": "A short title"}]}


class Server:
    """`turboquant serve --replay` as a child; without anything to say, with the model of demo/."""

    def __init__(self, program, folder, said):
        file = folder / "replay.json"
        file.write_text(json.dumps(replay(said)))
        mode = ["--replay", str(file)] if said else []
        self.log = folder / "serve.log"
        self.child = subprocess.Popen(
            [program, "serve", "--model", str(ROOT / "demo"), *mode, "--port", "0", "--json", "--quiet",
             "--served-model-name", NAME, "--api-key", "local-key", "--log-file", str(self.log), "--log-level", "debug"],
            stdout=subprocess.PIPE, text=True)
        self.port = json.loads(self.child.stdout.readline())["port"]
        self.url = f"http://127.0.0.1:{self.port}"

    def stop(self):
        self.child.terminate()
        return self.child.wait(60)


def claude(server, home, work, programs):
    env = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_AUTH_TOKEN": "local-key", "ANTHROPIC_MODEL": NAME,
           "ANTHROPIC_DEFAULT_HAIKU_MODEL": NAME, "ANTHROPIC_DEFAULT_SONNET_MODEL": NAME,
           "ANTHROPIC_DEFAULT_OPUS_MODEL": NAME, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
           "DISABLE_AUTOUPDATER": "1", "DISABLE_TELEMETRY": "1", "DISABLE_ERROR_REPORTING": "1",
           "CLAUDE_CONFIG_DIR": str(home / "claude")}
    return [programs["claude"], "-p", PROMPT, "--output-format", "json", "--allowedTools", "Bash"], env


def codex(server, home, work, programs):
    folder = home / "codex"
    folder.mkdir()
    (folder / "config.toml").write_text(f"""model = "{NAME}"
model_provider = "local"
check_for_update_on_startup = false
[analytics]
enabled = false
[features]
plugins = false
apps = false
[model_providers.local]
name = "local"
base_url = "{server.url}/v1"
env_key = "LOCAL_API_KEY"
wire_api = "responses"
""")
    return [programs["codex"], "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "-C",
            str(work), PROMPT], {"CODEX_HOME": str(folder), "LOCAL_API_KEY": "local-key"}


def opencode(package):
    def make(server, home, work, programs):
        folder = home / "config" / "opencode"
        folder.mkdir(parents=True)
        (folder / "opencode.json").write_text(json.dumps({
            "provider": {"local": {"npm": package, "options": {"baseURL": server.url + "/v1", "apiKey": "local-key"},
                                   "models": {NAME: {"limit": {"context": 200000, "output": 8000}}}}},
            "model": f"local/{NAME}", "small_model": f"local/{NAME}", "enabled_providers": ["local"],
            "autoupdate": False, "share": "disabled", "permission": {"bash": "allow", "edit": "allow"}}))
        env = {"XDG_CONFIG_HOME": str(home / "config"), "XDG_DATA_HOME": str(home / "data"),
               "XDG_CACHE_HOME": str(home / "cache"), "XDG_STATE_HOME": str(home / "state")}
        for name in ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS"):
            env["OPENCODE_DISABLE_" + name] = "1"
        return [programs["opencode"], "run", PROMPT], env
    return make


def qwen(kind):
    def make(server, home, work, programs):
        folder = home / ".qwen"
        folder.mkdir()
        (folder / "settings.json").write_text(json.dumps({
            "security": {"auth": {"selectedType": kind}}, "general": {"enableAutoUpdate": False},
            "privacy": {"usageStatisticsEnabled": False}, "telemetry": {"enabled": False}}))
        base = server.url + ("/v1" if kind == "openai" else "")
        env = {f"{kind.upper()}_BASE_URL": base, f"{kind.upper()}_API_KEY": "local-key", f"{kind.upper()}_MODEL": NAME}
        return [programs["qwen"], "-p", PROMPT, "--approval-mode", "yolo", "--output-format", "json"], env
    return make


def script(*command):
    def make(server, home, work, programs):
        return [programs[command[0]], *command[1:], server.url, PROMPT, RESULT], {}
    return make


SHELL = {"command": COMMAND, "description": "Write the file"}
# name: program, what the model says first, the set-up
CLIENTS = {
    "claude": ("claude", call("Bash", SHELL), claude),
    "codex": ("codex", call("exec_command", {"cmd": COMMAND}), codex),
    "opencode-chat": ("opencode", call("bash", SHELL), opencode("@ai-sdk/openai-compatible")),
    "opencode-responses": ("opencode", call("bash", SHELL), opencode("@ai-sdk/openai")),
    "opencode-anthropic": ("opencode", call("bash", SHELL), opencode("@ai-sdk/anthropic")),
    "qwen": ("qwen", call("run_shell_command", {**SHELL, "is_background": False}), qwen("openai")),
    "qwen-anthropic": ("qwen", call("run_shell_command", {**SHELL, "is_background": False}), qwen("anthropic")),
    "python-sdks": ("python", call("write_file", {"path": "made.txt"}), script("python", str(HERE / "sdk_turn.py"))),
    "python-embeddings": ("python", "", script("python", str(HERE / "sdk_embeddings.py"))),
    "node-sdks": ("node", call("write_file", {"path": "made.txt"}), script("node", str(HERE / "sdk_turn.mjs"))),
}


def version(programs, program):
    if program in ("python", "node"):
        return ""
    out = subprocess.run([programs[program], "--version"], capture_output=True, text=True, timeout=120)
    return (out.stdout or out.stderr).strip().splitlines()[-1] if out.stdout or out.stderr else ""


def try_client(name, options, programs):
    program, said, make = CLIENTS[name]
    with tempfile.TemporaryDirectory(prefix="tq-agent-") as scratch:
        scratch = pathlib.Path(scratch)
        home, work = scratch / "home", scratch / "work"
        home.mkdir()
        work.mkdir()
        server = Server(options.turboquant, scratch, said)
        start = time.time()
        try:
            command, more = make(server, home, work, programs)
            env = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8", "NO_PROXY": "127.0.0.1",
                   "NODE_PATH": options.node_path or "", "TERM": "dumb", **more}
            run = subprocess.run(command, cwd=work, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                 timeout=options.timeout)
            out, code = run.stdout + run.stderr, run.returncode
        except subprocess.TimeoutExpired as e:
            out, code = f"{e.stdout}{e.stderr}", "timeout"
        ended = server.stop()
        log = server.log.read_text()
        made = work / "made.txt"
        problems = []
        if code != 0:
            problems.append(f"exit code {code}")
        if said and (not made.exists() or RESULT not in made.read_text()):
            problems.append("the tool did not run")
        if "TQ-FINAL" not in out:
            problems.append("the last text is missing")
        if ended != 0:
            problems.append(f"the server ended with {ended}")
        refused = [line for line in log.splitlines() if " refused " in line or " failed " in line] if said else []
        problems += refused
        seconds = time.time() - start
        print(f"{'FAIL' if problems else 'ok':5}{name:20}{version(programs, program):28}{seconds:5.0f} s  "
              f"{log.count(' stream ')} streams", flush=True)
        for problem in problems:
            print("      " + problem)
        if problems and options.verbose:
            print(out[-4000:])
            print(log[-4000:])
        if options.keep:
            shutil.copytree(scratch, pathlib.Path(options.keep) / name, dirs_exist_ok=True, symlinks=True)
        return not problems


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turboquant", default=str(ROOT / "build/release/turboquant"))
    parser.add_argument("--bin", help="folder with CLIENT/node_modules/.bin/PROGRAM in it")
    parser.add_argument("--python", default=sys.executable, help="with the packages openai and anthropic")
    parser.add_argument("--node", default="node")
    parser.add_argument("--node-path", help="node_modules with openai and @anthropic-ai/sdk")
    parser.add_argument("--only", default=",".join(CLIENTS))
    parser.add_argument("--timeout", type=float, default=180)
    parser.add_argument("--keep", help="copy what each run left to this folder")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    programs = {"python": options.python, "node": options.node}
    for program in ("claude", "codex", "opencode", "qwen"):
        found = glob.glob(f"{options.bin}/*/node_modules/.bin/{program}") if options.bin else []
        programs[program] = found[0] if found else shutil.which(program)
    good = True
    for name in options.only.split(","):
        if programs[CLIENTS[name][0]] is None:
            print(f"--   {name:20}not installed")
            continue
        good = try_client(name, options, programs) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
