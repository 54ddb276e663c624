/** Opens a WebSocket to the origin of the page. `path` is from the origin. */
export function openSocket(path: string): WebSocket {
  const { protocol, host } = window.location;
  return new WebSocket(`${protocol === 'https:' ? 'wss' : 'ws'}://${host}${path}`);
}
