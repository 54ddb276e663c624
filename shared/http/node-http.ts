/**
 * The one home of node:http's values. An `import` of that module has all of its exports read, three of which
 * (WebSocket and its events) load Node's whole fetch: 5 MB of every process. Taken this way, only what is used is read.
 */
export const { Agent, get, request, ServerResponse, STATUS_CODES } =
  process.getBuiltinModule('node:http');
