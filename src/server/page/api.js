// Requests to the server that this page comes from. Paths are relative, so that the page works below
// a prefix of a proxy too.
import { settings } from "./settings.js";

export class ApiError extends Error {
  constructor(message, { status = 0, retryAfter = 0 } = {}) {
    super(message);
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

async function errorOf(response) {
  let message = `The server answered with status ${response.status}.`;
  try {
    message = (await response.json()).error.message || message;
  } catch {
    // A proxy's page, perhaps.
  }
  if (response.status === 401) message = "This server needs an API key.";
  return new ApiError(message, {
    status: response.status,
    retryAfter: Number(response.headers.get("retry-after")) || 0,
  });
}

async function send(path, options) {
  const headers = { ...options.headers };
  if (settings.key) headers.Authorization = `Bearer ${settings.key}`;
  let response;
  try {
    response = await fetch(path, { ...options, headers, cache: "no-store", credentials: "same-origin" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError("The server cannot be reached.");
  }
  if (!response.ok) throw await errorOf(response);
  return response;
}

export const getJson = async (path) => (await send(path, {})).json();
export const getText = async (path) => (await send(path, {})).text();
export const post = (path, body, signal) =>
  send(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
    signal,
  });
