/** Worker that sends requests to one URL over several keep-alive connections and posts the answers per second. */
import { connect } from 'node:net';
import { parentPort, workerData } from 'node:worker_threads';
import { systemClock } from '#shared/runtime/clock.ts';

export type Load = {
  url: string;
  headers: Record<string, string>;
  connections: number;
  seconds: number;
};

const MS_PER_SECOND = 1_000;
const HEAD_END = '\r\n\r\n';

const { url, headers, connections, seconds } = workerData as Load;
const { hostname, port, host, pathname } = new URL(url);
const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
const REQUEST = `GET ${pathname} HTTP/1.1\r\nHost: ${host}\r\n${lines.join('')}\r\n`;

let answers = 0;

/** Sends one request at a time: the next one when the response to the last is complete. */
function drive(): void {
  const socket = connect(Number(port), hostname);
  let text = '';
  socket.setEncoding('latin1');
  socket.on('data', (chunk: string) => {
    text += chunk;
    const end = text.indexOf(HEAD_END);
    if (end < 0) return;
    const [, length = ''] = /\r\ncontent-length: (\d+)/i.exec(text) ?? [];
    if (!text.startsWith('HTTP/1.1 200') || length === '') throw new Error(text.slice(0, 300));
    if (text.length < end + HEAD_END.length + Number(length)) return;
    text = '';
    answers += 1;
    socket.write(REQUEST);
  });
  socket.write(REQUEST);
}

/** Polls without pause: if this thread slept, the server would spend time on waking it. */
function poll(): void {
  setImmediate(poll);
}

for (let count = 0; count < connections; count += 1) drive();
poll();
await systemClock.sleep(seconds * MS_PER_SECOND);
parentPort?.postMessage(answers / seconds);
process.exit(0);
