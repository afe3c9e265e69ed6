// Markdown on the page. While an answer grows only its last blocks are made again, so that what is
// finished stays as it is: selected, scrolled.
import { codeBlock } from "./code.js";
import { el } from "./dom.js";
import { blocksOf } from "./markdown_blocks.js";
import { appendInline } from "./markdown_inline.js";

function listNode(block) {
  const list = el(block.start === null ? "ul" : "ol", {
    start: block.start !== null && block.start !== 1 && block.start,
    class: block.isLoose && "loose",
  });
  for (const item of block.items) {
    const node = el("li", { class: item.checked !== null && "task" });
    if (item.checked !== null) {
      node.append(el("input", { type: "checkbox", disabled: true, checked: item.checked, "aria-label": "Task" }));
    }
    // The one text of a tight item is no paragraph.
    const isTight = !block.isLoose && item.blocks.filter(({ kind }) => kind === "paragraph").length === 1;
    for (const [i, inner] of item.blocks.entries()) {
      if (inner.kind === "paragraph" && i === 0 && isTight) appendInline(node, inner.text);
      else node.append(blockNode(inner));
    }
    list.append(node);
  }
  return list;
}

function tableNode(block) {
  const row = (cells, tag) =>
    el("tr", {}, cells.map((text, i) => appendInline(el(tag, { class: block.aligns[i] !== "left" && block.aligns[i] }), text)));
  return el("div", { class: "table", tabindex: "0", role: "region", "aria-label": "Table" },
    el("table", {}, el("thead", {}, row(block.head, "th")), el("tbody", {}, block.rows.map((cells) => row(cells, "td")))));
}

function blockNode(block) {
  switch (block.kind) {
    case "code":
      return codeBlock(block.text, block.language);
    case "heading":
      // h1 and h2 are the page's.
      return appendInline(el(`h${Math.min(block.level + 2, 6)}`), block.text);
    case "rule":
      return el("hr");
    case "formula":
      return el("pre", { class: "formula" }, block.text);
    case "quote":
      return el("blockquote", {}, block.blocks.map(blockNode));
    case "list":
      return listNode(block);
    case "table":
      return tableNode(block);
    default:
      return appendInline(el("p"), block.text);
  }
}

export class MarkdownView {
  constructor() {
    this.root = el("div", { class: "markdown" });
    this.sources = [];
  }

  update(text) {
    const blocks = blocksOf(text);
    let same = 0;
    while (same < blocks.length && blocks[same].source === this.sources[same]) ++same;
    while (this.root.childNodes.length > same) this.root.lastChild.remove();
    for (const block of blocks.slice(same)) this.root.append(blockNode(block));
    this.sources = blocks.map((block) => block.source);
  }
}
