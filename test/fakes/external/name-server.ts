/** A name server on a free loopback port whose answers the test chooses, to change them between two queries. */
import { createSocket } from 'node:dgram';
import { Resolver } from 'node:dns';
import { once } from 'node:events';
import type { ResolveAll } from '../../../validator/central/delivery/webhooks/webhook-post.ts';

const HEADER_BYTES = 12;
const TYPE_AND_CLASS_BYTES = 4;

/** Answers every query with IPv4 addresses. The caller must call `close()`. */
export async function startNameServer() {
  let answers: string[][] = [];
  let queries = 0;
  const socket = createSocket('udp4');
  socket.on('message', (query, { address, port }) => {
    const next = answers[Math.min(queries, answers.length - 1)] ?? [];
    queries += 1;
    socket.send(answerTo(query, next), port, address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  const resolver = new Resolver();
  resolver.setServers([`127.0.0.1:${socket.address().port}`]);
  const resolve: ResolveAll = (hostname, _, found) => {
    resolver.resolve4(hostname, (error, addresses) =>
      found(
        error,
        (addresses ?? []).map((address) => ({ address, family: 4 })),
      ),
    );
  };
  return {
    /** Resolves names at this server only. */
    resolve,
    /** Sets the answer to each of the next queries; the last one repeats. */
    answerWith(next: string[][]): void {
      answers = next;
      queries = 0;
    },
    /** Number of queries since `answerWith`. */
    queries: () => queries,
    close(): void {
      resolver.cancel();
      socket.close();
    },
  };
}

/** Returns the response with the query's question and one A record of lifetime 0 for each address (RFC 1035). */
function answerTo(query: Buffer, addresses: readonly string[]): Buffer {
  const questionEnd = query.indexOf(0, HEADER_BYTES) + 1 + TYPE_AND_CLASS_BYTES;
  const header = Buffer.from(query.subarray(0, HEADER_BYTES));
  header.writeUInt16BE(0x8180, 2);
  header.writeUInt16BE(addresses.length, 6);
  header.writeUInt16BE(0, 8);
  header.writeUInt16BE(0, 10);
  const records = addresses.map((address) =>
    Buffer.from([
      0xc0,
      HEADER_BYTES,
      0,
      1,
      0,
      1,
      0,
      0,
      0,
      0,
      0,
      4,
      ...address.split('.').map(Number),
    ]),
  );
  return Buffer.concat([header, query.subarray(HEADER_BYTES, questionEnd), ...records]);
}
