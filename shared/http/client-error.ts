/** What is no HTTP request at all is answered with the envelope too, written by hand: there is no reply object yet. */
import type { Socket } from 'node:net';
import { ApiError } from '../runtime/errors.ts';
import { errorBody } from './error-body.ts';
import { STATUS_CODES } from './node-http.ts';

type Refusal = { status: number; message: string; hint: string };

/** By the code of Node's parser; anything else is a malformed request. */
const REFUSALS: Record<string, Refusal> = {
  HPE_HEADER_OVERFLOW: {
    status: 431,
    message: 'The request headers are too large',
    hint: 'Send fewer or shorter headers.',
  },
  ERR_HTTP_REQUEST_TIMEOUT: {
    status: 408,
    message: 'The request did not arrive in time',
    hint: 'Send the whole request at once.',
  },
};
const MALFORMED: Refusal = {
  status: 400,
  message: 'The request could not be read',
  hint: 'Send a well-formed HTTP/1.1 request.',
};

/** Answers and closes; a socket that is gone already is only dropped. */
export function answerClientError(
  error: Error & { code?: string },
  socket: Socket,
  { requestId, nowMs }: { requestId: string; nowMs: number },
): void {
  if (!socket.writable || error.code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  const { status, message, hint } = REFUSALS[error.code ?? ''] ?? MALFORMED;
  const refusal = new ApiError(status === 400 ? 'bad_request' : 'client_error', message, {
    status,
    hint,
  });
  const body = JSON.stringify(errorBody(refusal, { requestId, nowMs, profile: 'envelope' }));
  socket.end(
    [
      `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
      'Content-Type: application/json; charset=utf-8',
      `Content-Length: ${Buffer.byteLength(body)}`,
      `X-Request-Id: ${requestId}`,
      'Connection: close',
      '',
      body,
    ].join('\r\n'),
  );
}
