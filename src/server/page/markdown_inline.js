// The text of a block -> nodes: emphasis, code, links, formulas. A link is made for http, https and
// mailto alone; a picture becomes a link, so that nothing is fetched. Time grows with the text, not
// with its square, whatever the text is.
import { el } from "./dom.js";

const MOST_NESTED = 16;
const PUNCTUATION = /[\p{P}\p{S}]/u;
const DESTINATION = /\(\s{0,9}(<[^<>\n]{0,2000}>|[^\s()<>]{0,2000}(?:\([^\s()<>]{0,500}\)[^\s()<>]{0,2000}){0,4})(?:\s{1,9}(?:"[^"]{0,300}"|'[^']{0,300}'))?\s{0,9}\)/y;
const ADDRESS = /https?:\/\/[^\s<>"'`*|\\]+/y;
const BRACKETED = /<((?:https?:\/\/|mailto:)[^\s<>]{1,2000})>/y;
const BREAK = /<br\s{0,3}\/?>/iy;
const ENTITY = /&(amp|lt|gt|quot|nbsp|#39);/y;
const ENTITIES = { amp: "&", lt: "<", gt: ">", quot: '"', nbsp: "\u00a0", "#39": "'" };

// The address, if it may be followed.
export function safeAddress(text) {
  let url;
  try {
    url = new URL(text);
  } catch {
    return null;
  }
  return ["http:", "https:", "mailto:"].includes(url.protocol) ? url.href : null;
}

const anchor = (href, title = null) =>
  el("a", { href, target: "_blank", rel: "noopener noreferrer nofollow", title });

function matchAt(pattern, text, at) {
  pattern.lastIndex = at;
  return pattern.exec(text);
}

// Splits a text into pieces: {text}, {node}, {mark, ...} (runs of * _ ~), {bracket}.
class Scanner {
  constructor(text) {
    this.text = text;
    this.pieces = [];
    this.brackets = [];
    this.at = 0;
    this.plain = "";
    this.unclosed = new Set();  // closers that do not come any more
  }

  scan() {
    while (this.at < this.text.length) {
      const c = this.text[this.at];
      const taken = (c === "\\" && this.escape()) || (c === "`" && this.code()) || (c === "\n" && this.newline()) ||
        ((c === "*" || c === "_" || c === "~") && this.mark(c)) || ((c === "[" || c === "!") && this.open(c)) ||
        (c === "]" && this.close()) || (c === "<" && this.angle()) || (c === "h" && this.address()) ||
        (c === "&" && this.entity()) || (c === "$" && this.formula("$$", "$$"));
      if (!taken) {
        this.plain += c;
        ++this.at;
      }
    }
    this.flush();
    return this.pieces;
  }

  flush() {
    if (this.plain !== "") this.pieces.push({ text: this.plain });
    this.plain = "";
  }
  push(piece, size) {
    this.flush();
    this.pieces.push(piece);
    this.at += size;
    return true;
  }

  find(closer, from) {
    if (this.unclosed.has(closer)) return -1;
    const found = this.text.indexOf(closer, from);
    if (found < 0) this.unclosed.add(closer);
    return found;
  }

  escape() {
    if (this.formula("\\(", "\\)") || this.formula("\\[", "\\]")) return true;
    const next = this.text[this.at + 1];
    if (next === "\n") return this.push({ node: el("br") }, 2);
    if (next === undefined || !/[!-/:-@[-`{-~]/.test(next)) return false;
    this.plain += next;
    this.at += 2;
    return true;
  }

  formula(opener, closer) {
    if (!this.text.startsWith(opener, this.at)) return false;
    const end = this.find(closer, this.at + 2);
    if (end <= this.at + 2) return false;
    const node = el("span", { class: "formula" }, this.text.slice(this.at + 2, end).trim());
    return this.push({ node }, end + 2 - this.at);
  }

  code() {
    let size = 1;
    while (this.text[this.at + size] === "`") ++size;
    const run = "`".repeat(size);
    let end = this.unclosed.has(run) ? -1 : this.text.indexOf(run, this.at + size);
    while (end >= 0 && this.text[end + size] === "`") {
      // A longer run is no end.
      while (this.text[end] === "`") ++end;
      end = this.text.indexOf(run, end);
    }
    if (end < 0) {
      this.unclosed.add(run);
      this.plain += run;
      this.at += size;
      return true;
    }
    let code = this.text.slice(this.at + size, end).replaceAll("\n", " ");
    if (code.startsWith(" ") && code.endsWith(" ") && code.trim() !== "") code = code.slice(1, -1);
    return this.push({ node: el("code", {}, code) }, end + size - this.at);
  }

  newline() {
    this.plain = this.plain.trimEnd();
    return this.push({ node: el("br") }, 1);
  }

  mark(c) {
    let size = 1;
    while (this.text[this.at + size] === c) ++size;
    if (c === "~" && size !== 2) return false;
    const before = this.text[this.at - 1] ?? " ";
    const after = this.text[this.at + size] ?? " ";
    const isLeft = !/\s/.test(after) && (!PUNCTUATION.test(after) || /\s/.test(before) || PUNCTUATION.test(before));
    const isRight = !/\s/.test(before) && (!PUNCTUATION.test(before) || /\s/.test(after) || PUNCTUATION.test(after));
    const inWord = c === "_" && isLeft && isRight;
    return this.push({
      mark: c,
      count: size,
      size,
      opens: [],   // elements that begin behind what is left of the run, the outer first
      closes: [],  // elements that end before it, the inner first
      canOpen: isLeft && (!inWord || PUNCTUATION.test(before)),
      canClose: isRight && (!inWord || PUNCTUATION.test(after)),
    }, size);
  }

  open(c) {
    const text = c === "!" ? "![" : "[";
    if (!this.text.startsWith(text, this.at)) return false;
    this.push({ bracket: text }, text.length);
    this.brackets.push(this.pieces.length - 1);
    return true;
  }

  close() {
    if (this.brackets.length === 0) return false;
    const begin = this.brackets.pop();
    const found = matchAt(DESTINATION, this.text, this.at + 1);
    const href = found && safeAddress(found[1].replace(/^<|>$/g, ""));
    if (!href) return false;
    this.flush();
    const link = anchor(href);
    const inner = this.pieces.splice(begin);
    const isPicture = inner.shift().bracket === "![";
    appendPieces(link, inner);
    if (link.textContent.trim() === "") link.textContent = href;
    if (isPicture) link.classList.add("picture");
    // No links within links.
    this.brackets = [];
    return this.push({ node: link }, 1 + found[0].length);
  }

  angle() {
    if (matchAt(BREAK, this.text, this.at)) return this.push({ node: el("br") }, BREAK.lastIndex - this.at);
    const found = matchAt(BRACKETED, this.text, this.at);
    const href = found && safeAddress(found[1]);
    if (!href) return false;
    const link = anchor(href);
    link.textContent = found[1].replace(/^mailto:/, "");
    return this.push({ node: link }, found[0].length);
  }

  address() {
    if (this.brackets.length > 0 || /\w/.test(this.text[this.at - 1] ?? " ")) return false;
    const found = matchAt(ADDRESS, this.text, this.at);
    if (found === null) return false;
    let text = found[0];
    let last = text.length;
    while (last > 0 && /[.,;:!?)\]}_~]/.test(text[last - 1])) {
      if (text[last - 1] === ")" && text.slice(0, last).includes("(")) break;
      --last;
    }
    text = text.slice(0, last);
    const href = safeAddress(text);
    if (!href) return false;
    const link = anchor(href);
    link.textContent = text;
    return this.push({ node: link }, text.length);
  }

  entity() {
    const found = matchAt(ENTITY, this.text, this.at);
    if (found === null) return false;
    this.plain += ENTITIES[found[1]];
    this.at += found[0].length;
    return true;
  }
}

const tagOf = (mark, size) => (mark === "~" ? "del" : size === 2 ? "strong" : "em");

// Pairs runs of * _ ~ by the rules of CommonMark.
function pairMarks(pieces) {
  const stack = [];
  const bottoms = new Map();  // where openers for such a closer have been looked for in vain
  for (const closer of pieces) {
    if (closer.mark === undefined) continue;
    while (closer.canClose && closer.count > 0) {
      const key = `${closer.mark}${closer.canOpen}${closer.size % 3}`;
      const bottom = Math.min(bottoms.get(key) ?? 0, stack.length);
      let i = stack.length - 1;
      for (; i >= bottom; --i) {
        const opener = stack[i];
        const odd = (opener.canClose || closer.canOpen) && (opener.size + closer.size) % 3 === 0 &&
          (opener.size % 3 !== 0 || closer.size % 3 !== 0);
        if (opener.mark === closer.mark && !odd) break;
      }
      if (i < bottom) {
        bottoms.set(key, stack.length);
        break;
      }
      const opener = stack[i];
      const size = closer.mark === "~" || (opener.count >= 2 && closer.count >= 2) ? 2 : 1;
      opener.opens.unshift(tagOf(closer.mark, size));
      closer.closes.push(tagOf(closer.mark, size));
      opener.count -= size;
      closer.count -= size;
      stack.length = opener.count > 0 ? i + 1 : i;
      for (const [name, value] of bottoms) bottoms.set(name, Math.min(value, stack.length));
    }
    if (closer.canOpen && closer.count > 0) stack.push(closer);
  }
}

function appendPieces(parent, pieces) {
  pairMarks(pieces);
  const open = [parent];
  for (const piece of pieces) {
    if (piece.mark === undefined) {
      open.at(-1).append(piece.node ?? piece.text ?? piece.bracket);
      continue;
    }
    for (let i = 0; i < piece.closes.length; ++i) open.pop();
    if (piece.count > 0) open.at(-1).append(piece.mark.repeat(piece.count));
    for (const tag of piece.opens) {
      if (open.length > MOST_NESTED) {
        open.push(open.at(-1));
      } else {
        const node = el(tag);
        open.at(-1).append(node);
        open.push(node);
      }
    }
  }
}

export function appendInline(parent, text) {
  appendPieces(parent, new Scanner(text).scan());
  return parent;
}
