// Numbers as people read them.

const GROUPED = new Intl.NumberFormat("en-US");

export const count = (value) => GROUPED.format(Math.round(value));

export function bytes(value) {
  if (value >= 99.5e9) return `${Math.round(value / 1e9)} GB`;
  if (value >= 1e9) return `${(value / 1e9).toFixed(1)} GB`;
  if (value >= 1e6) return `${Math.round(value / 1e6)} MB`;
  return `${Math.round(value / 1e3)} kB`;
}

export function seconds(ms) {
  const value = ms / 1000;
  if (value < 1) return `${value.toFixed(2)} s`;
  if (value < 60) return `${value.toFixed(1)} s`;
  return `${Math.floor(value / 60)} min ${Math.round(value % 60)} s`;
}

export const rate = (tokens, ms) => (ms > 0 ? `${((tokens * 1000) / ms).toFixed(1)} tok/s` : "");

export const percent = (part, whole) => (whole > 0 ? `${Math.round((100 * part) / whole)}%` : "0%");

export function when(time) {
  const days = Math.floor((Date.now() - time) / 86400e3);
  const date = new Date(time);
  if (days < 1 && date.getDate() === new Date().getDate()) {
    return date.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  }
  return days < 300
    ? date.toLocaleDateString([], { day: "numeric", month: "short" })
    : date.toLocaleDateString([], { month: "short", year: "numeric" });
}
