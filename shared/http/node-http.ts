/**
 * Values of node:http; the only file that reads them. A static import evaluates all exports, three of which (WebSocket
 * and its events) load Node's fetch implementation: 5 MB per process. This way only the used exports are evaluated.
 */
export const { Agent, get, request, ServerResponse, STATUS_CODES } =
  process.getBuiltinModule('node:http');
