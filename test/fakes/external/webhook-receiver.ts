/** A webhook receiver on loopback. It stores deliveries and answers as the test sets. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

export type Received = { headers: Record<string, string>; body: string };

export type WebhookReceiver = Awaited<ReturnType<typeof startWebhookReceiver>>;

/** Starts the receiver. The caller must call `close()`. */
export async function startWebhookReceiver() {
  const received: Received[] = [];
  let status: number | 'none' | 'never' = 204;
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const headers = Object.fromEntries(
      Object.entries(request.headers).map(([name, value]) => [name, String(value)]),
    );
    received.push({ headers, body: Buffer.concat(chunks).toString('utf8') });
    if (status === 'never') return;
    if (status === 'none') request.socket.destroy();
    else response.writeHead(status, { location: `${url}/elsewhere` }).end('{}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;
  return {
    url,
    port,
    received,
    /** Sets the status of later answers; `none` closes the connection, `never` sends no response. */
    answer(next: number | 'none' | 'never'): void {
      status = next;
    },
    /** Message ids in the order in which they arrived. */
    ids: () => received.map(({ headers }) => headers['webhook-id']),
    async close(): Promise<void> {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
