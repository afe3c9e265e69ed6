// Markdown text -> blocks. What models write: paragraphs, headings, lists, quotes, fenced code, tables,
// rules, display formulas. HTML is text. One pass, bounded nesting, whatever the text is.
//
// A block: {kind, source, ...}; source: its lines, equal for equal blocks.

const MOST_NESTED = 8;

const FENCE = /^( {0,3})(`{3,}|~{3,})\s*([^`]*)$/;
const HEADING = /^ {0,3}(#{1,6})(?:[ \t]+(.*))?$/;
const RULE = /^ {0,3}([-*_])[ \t]*(?:\1[ \t]*){2,}$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^( *)([-*+]|\d{1,9}[.)])(?:( +)(.*))?$/;
const TABLE_RULE = /^ *\|? *:?-+:? *(?:\| *:?-+:? *)*\|? *$/;

const isBlank = (line) => line.trim() === "";
const indentOf = (line) => line.length - line.trimStart().length;

export function cellsOf(line) {
  const cells = [];
  let cell = "";
  let inCode = false;
  const text = line.trim();
  for (let i = 0; i < text.length; ++i) {
    if (text[i] === "\\" && text[i + 1] === "|") {
      cell += "|";
      ++i;
    } else if (text[i] === "|" && !inCode) {
      cells.push(cell.trim());
      cell = "";
    } else {
      if (text[i] === "`") inCode = !inCode;
      cell += text[i];
    }
  }
  cells.push(cell.trim());
  if (cells[0] === "" && text.startsWith("|")) cells.shift();
  if (cells.length > 0 && cells.at(-1) === "" && text.endsWith("|")) cells.pop();
  return cells;
}

const startsTable = (lines, i) =>
  i + 1 < lines.length && lines[i].includes("|") && lines[i + 1].includes("-") && TABLE_RULE.test(lines[i + 1]) &&
  cellsOf(lines[i]).length === cellsOf(lines[i + 1]).length;

function formulaEnd(line) {
  const text = line.trimStart();
  if (text.startsWith("$$")) return "$$";
  return text.startsWith("\\[") ? "\\]" : "";
}

// Whether a line ends the paragraph before it.
function interrupts(lines, i) {
  const line = lines[i];
  const item = ITEM.exec(line);
  return FENCE.test(line) || HEADING.test(line) || RULE.test(line) || QUOTE.test(line) || formulaEnd(line) !== "" ||
    (item !== null && item[4]?.trim() && (!/\d/.test(item[2]) || /^1[.)]$/.test(item[2]))) || startsTable(lines, i);
}

class Reader {
  constructor(lines, depth) {
    this.lines = lines;
    this.depth = depth;
    this.at = 0;
    this.blocks = [];
  }

  read() {
    while (this.at < this.lines.length) {
      const begin = this.at;
      const line = this.lines[begin];
      if (isBlank(line)) {
        ++this.at;
        continue;
      }
      const block = this.fence(line) ?? this.heading(line) ?? this.rule(line) ?? this.formula(line) ??
        this.quote(line) ?? this.list(line) ?? this.table() ?? this.indented(line) ?? this.paragraph();
      block.source = this.lines.slice(begin, this.at).join("\n");
      this.blocks.push(block);
    }
    return this.blocks;
  }

  inner(lines) {
    if (this.depth >= MOST_NESTED) return [{ kind: "paragraph", text: lines.join("\n") }];
    return new Reader(lines, this.depth + 1).read();
  }

  fence(line) {
    const open = FENCE.exec(line);
    if (open === null) return null;
    const close = new RegExp(`^ {0,3}\\${open[2][0]}{${open[2].length},}\\s*$`);
    const code = [];
    let closed = false;
    for (++this.at; this.at < this.lines.length; ++this.at) {
      if (close.test(this.lines[this.at])) {
        closed = true;
        ++this.at;
        break;
      }
      const text = this.lines[this.at];
      code.push(text.slice(Math.min(open[1].length, indentOf(text))));
    }
    return { kind: "code", language: open[3].trim().split(/\s/)[0], text: code.join("\n"), closed };
  }

  heading(line) {
    const found = HEADING.exec(line);
    if (found === null) return null;
    ++this.at;
    let text = (found[2] || "").trim();
    const hashes = text.length - text.replace(/#+$/, "").length;
    if (hashes > 0 && (hashes === text.length || /\s/.test(text[text.length - hashes - 1]))) {
      text = text.slice(0, text.length - hashes).trim();
    }
    return { kind: "heading", level: found[1].length, text };
  }

  rule(line) {
    if (!RULE.test(line)) return null;
    ++this.at;
    return { kind: "rule" };
  }

  formula(line) {
    const end = formulaEnd(line);
    if (end === "") return null;
    const first = line.trimStart().slice(2);
    const lines = [];
    for (let i = this.at; i < this.lines.length && !(i > this.at && isBlank(this.lines[i])); ++i) {
      const text = i === this.at ? first : this.lines[i];
      const stop = text.indexOf(end);
      if (stop < 0) {
        lines.push(text);
      } else if (isBlank(text.slice(stop + 2))) {
        lines.push(text.slice(0, stop));
        this.at = i + 1;
        return { kind: "formula", text: lines.join("\n").trim() };
      } else {
        return null;
      }
    }
    return null;
  }

  quote(line) {
    if (!QUOTE.test(line)) return null;
    const lines = [];
    for (; this.at < this.lines.length && QUOTE.test(this.lines[this.at]); ++this.at) {
      lines.push(this.lines[this.at].replace(QUOTE, ""));
    }
    return { kind: "quote", blocks: this.inner(lines) };
  }

  list(line) {
    const first = ITEM.exec(line);
    if (first === null || RULE.test(line)) return null;
    const isOrdered = /\d/.test(first[2]);
    const base = first[1].length;
    const items = [];
    let isLoose = false;
    for (let found = first; found !== null;) {
      const { lines, gap } = this.item(found);
      items.push(lines);
      const next = this.lines[this.at] ?? "";
      found = RULE.test(next) ? null : ITEM.exec(next);
      const goesOn = found !== null && Math.abs(found[1].length - base) < 2 && /\d/.test(found[2]) === isOrdered &&
        found[2].at(-1) === first[2].at(-1);
      if (!goesOn) break;
      if (gap) isLoose = true;
    }
    return {
      kind: "list",
      start: isOrdered ? Number.parseInt(first[2], 10) : null,
      isLoose,
      items: items.map((lines) => this.listItem(lines)),
    };
  }

  // The lines of an item, without its mark and indent; gap: a blank line follows it.
  item(found) {
    const base = found[1].length;
    const offset = base + found[2].length + Math.min(found[3]?.length ?? 1, 4);
    // Many a model indents by two whatever the mark is.
    const least = Math.min(offset, base + 2);
    const lines = [found[4] ?? ""];
    let gap = false;
    for (++this.at; this.at < this.lines.length; ++this.at) {
      const line = this.lines[this.at];
      if (isBlank(line)) {
        gap = true;
        lines.push("");
        continue;
      }
      const indent = indentOf(line);
      const isLazy = !gap && ITEM.exec(line) === null && !interrupts(this.lines, this.at);
      if (indent < least && !isLazy) break;
      gap = false;
      lines.push(line.slice(Math.min(indent, offset)));
    }
    while (lines.length > 1 && lines.at(-1) === "") lines.pop();
    return { lines, gap };
  }

  listItem(lines) {
    const task = /^\[([ xX])\] /.exec(lines[0]);
    if (task !== null) lines[0] = lines[0].slice(4);
    return { checked: task === null ? null : task[1] !== " ", blocks: this.inner(lines) };
  }

  table() {
    if (!startsTable(this.lines, this.at)) return null;
    const head = cellsOf(this.lines[this.at]);
    const aligns = cellsOf(this.lines[this.at + 1]).map((cell) => {
      if (cell.endsWith(":")) return cell.startsWith(":") ? "center" : "right";
      return "left";
    });
    const rows = [];
    for (this.at += 2; this.at < this.lines.length; ++this.at) {
      const line = this.lines[this.at];
      if (isBlank(line) || !line.includes("|")) break;
      const cells = cellsOf(line).slice(0, head.length);
      while (cells.length < head.length) cells.push("");
      rows.push(cells);
    }
    return { kind: "table", head, aligns, rows };
  }

  indented(line) {
    if (this.depth > 0 || !/^(?: {4}|\t)/.test(line)) return null;
    const code = [];
    for (; this.at < this.lines.length; ++this.at) {
      const text = this.lines[this.at];
      if (!isBlank(text) && !/^(?: {4}|\t)/.test(text)) break;
      code.push(text.replace(/^(?: {1,4}|\t)/, ""));
    }
    return { kind: "code", language: "", text: code.join("\n").trimEnd(), closed: true };
  }

  paragraph() {
    const lines = [this.lines[this.at]];
    for (++this.at; this.at < this.lines.length; ++this.at) {
      if (isBlank(this.lines[this.at]) || interrupts(this.lines, this.at)) break;
      lines.push(this.lines[this.at]);
    }
    return { kind: "paragraph", text: lines.map((line) => line.trim()).join("\n") };
  }
}

export const blocksOf = (text) => new Reader(text.replace(/\r\n?/g, "\n").split("\n"), 0).read();
