/**
 * Re-exports values of node:http; the only file that imports them. A static import evaluates all exports, three of
 * which (WebSocket and its events) load Node's fetch implementation: 5 MB per process. This file evaluates only the
 * exports that are used.
 */
export const { Agent, get, request, ServerResponse, STATUS_CODES } =
  process.getBuiltinModule('node:http');
