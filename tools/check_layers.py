#!/usr/bin/env python3
"""Fails when a source file includes a folder that its own may not see (ARCHITECTURE.md, "Who may include whom")."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SRC = ROOT / "src"

# folder -> folders it may include besides itself; what those may include is reachable too.
DIRECT = {
    "base": [],
    "tensor": ["base"],
    "codec": ["tensor"],
    "backend": ["codec"],
    "backend/ref": ["backend"],
    "backend/cpu": ["backend"],
    "weights": ["backend"],
    "cache": ["backend"],
    "model": ["weights", "cache"],
    "sampling": ["base"],
    "engine": ["model", "sampling"],
    "quantize": ["model"],
    "tokenizer": ["base"],
    "grammar": ["sampling", "tokenizer"],
    "chat": ["tokenizer"],
    "eval": ["engine", "tokenizer"],
    "plan": ["engine", "quantize"],
    "api": ["engine", "plan", "chat", "quantize", "eval"],
    "hub": ["base"],
    "server/transport": ["base"],
    "server": ["engine", "chat", "grammar", "api", "server/transport"],
    "apps": ["engine", "plan", "chat", "quantize", "eval", "api", "hub", "server"],
}
IMPLEMENTATIONS = {"backend/ref", "backend/cpu"}  # named by make_backend.cc alone


def folder_of(path: str) -> str:
    parts = path.split("/")
    for depth in (2, 1):
        name = "/".join(parts[:depth])
        if name in DIRECT and len(parts) > depth:
            return name
    return ""


def reachable(folder: str) -> set:
    seen, todo = set(), [folder]
    while todo:
        current = todo.pop()
        if current not in seen:
            seen.add(current)
            todo += DIRECT[current]
    return seen


def main() -> int:
    errors = []
    for file in sorted(SRC.rglob("*")):
        if file.suffix not in {".h", ".cc", ".inc"}:
            continue
        name = file.relative_to(SRC).as_posix()
        folder = folder_of(name)
        if not folder:
            errors.append(f"src/{name}: its folder is not in tools/check_layers.py")
            continue
        allowed = reachable(folder)
        text = file.read_text(encoding="ascii")
        if not name.endswith("_test.cc"):
            for line in re.findall(r'^#include "([^"]+)"', text, re.M):
                target = folder_of(line)
                if target and target not in allowed:
                    errors.append(f"src/{name}: {folder} may not include {line}")
                if target in IMPLEMENTATIONS and target != folder:
                    errors.append(f"src/{name}: {line} is seen by backend_list.inc only")
        if "backend/cpu/" not in name and "hwy/" in text and "#include <hwy" in text:
            errors.append(f"src/{name}: Highway is for backend/cpu only")
    for error in errors:
        print(error, file=sys.stderr)
    print(f"layers: {'ok' if not errors else str(len(errors)) + ' errors'}")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
