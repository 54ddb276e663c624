/** Sends an upgrade request by hand, for handshakes that a correct client would not send. */
import { request as httpRequest, type IncomingMessage } from 'node:http';

export type UpgradeAnswer = { status: number; code: string | null; requestId: string | null };

const HANDSHAKE = {
  connection: 'Upgrade',
  upgrade: 'websocket',
  'sec-websocket-version': '13',
  'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==',
};

/** Returns the status, and the error code if the server rejects the upgrade. Closes the socket. */
export function upgrade(
  url: string,
  headers: Record<string, string> = {},
  method = 'GET',
): Promise<UpgradeAnswer> {
  return new Promise((resolve, reject) => {
    const sent = httpRequest(url, { method, headers: { ...HANDSHAKE, ...headers } });
    sent.once('error', reject);
    sent.once('upgrade', (response, socket) => {
      socket.destroy();
      resolve(answerOf(response, ''));
    });
    sent.once('response', async (response) => {
      let body = '';
      for await (const part of response) body += part;
      resolve(answerOf(response, body));
    });
    sent.end();
  });
}

function answerOf({ statusCode = 0, headers }: IncomingMessage, body: string): UpgradeAnswer {
  const requestId = headers['x-request-id'];
  return {
    status: statusCode,
    code: body === '' ? null : JSON.parse(body).error.code,
    requestId: typeof requestId === 'string' ? requestId : null,
  };
}
