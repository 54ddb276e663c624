/** Worker that sends prepared requests, each once, on a few keep-alive connections. */
import { connect } from 'node:net';
import { parentPort, workerData } from 'node:worker_threads';

export type RequestLoad = { url: string; texts: string[]; connections: number };

const { url, texts, connections } = workerData as RequestLoad;
const { hostname, port } = new URL(url);

/** Resolves when all requests were answered with 200. */
function sendAll(): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: hostname, port: Number(port), noDelay: true });
    const next = () => {
      const text = texts.pop();
      if (text !== undefined) return socket.write(text);
      socket.destroy();
      return resolve();
    };
    socket.on('data', (bytes) => {
      // Each response fits into one packet.
      if (!bytes.toString('latin1').startsWith('HTTP/1.1 200')) reject(new Error(String(bytes)));
      else next();
    });
    socket.on('error', reject);
    next();
  });
}

await Promise.all(Array.from({ length: connections }, sendAll));
parentPort?.postMessage('sent');
