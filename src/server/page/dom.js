// Builds elements. Texts become text nodes; nothing in this page reads markup out of a text.

export const byId = (id) => document.getElementById(id);

// el("p", {class: "x", onclick: f}, "text", node): false and null are left out.
export function el(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === false || value === null || value === undefined) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== false && child !== null && child !== undefined));
  return node;
}

// For screen readers alone.
export function announce(text) {
  byId("announcer").textContent = text;
}

// Asks in the page's own dialog; resolves to whether the answer was yes.
export function confirmed(question, yes = "Delete") {
  const dialog = byId("confirm");
  byId("confirm-text").textContent = question;
  byId("confirm-yes").textContent = yes;
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true });
  });
}
