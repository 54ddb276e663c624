/** A collector that receives spans by OTLP/HTTP in JSON. */
import { createServer } from 'node:http';
import { z } from 'zod';

const Value = z.union([
  z.object({ stringValue: z.string() }).transform(({ stringValue }) => stringValue),
  z.object({ intValue: z.coerce.number() }).transform(({ intValue }) => intValue),
  z.unknown().transform(() => null),
]);
const Attributes = z
  .array(z.object({ key: z.string(), value: Value }))
  .default([])
  .transform((list) => Object.fromEntries(list.map(({ key, value }) => [key, value])));
const Span = z.object({
  traceId: z.string().regex(/^[0-9a-f]{32}$/),
  spanId: z.string().regex(/^[0-9a-f]{16}$/),
  parentSpanId: z.string().optional(),
  name: z.string(),
  kind: z.int(),
  startTimeUnixNano: z.string().regex(/^\d+$/),
  endTimeUnixNano: z.string().regex(/^\d+$/),
  attributes: Attributes,
  status: z.object({ code: z.int().default(0), message: z.string().optional() }),
});
const Request = z.object({
  resourceSpans: z.array(
    z.object({
      resource: z.object({ attributes: Attributes }),
      scopeSpans: z.array(z.object({ spans: z.array(Span) })),
    }),
  ),
});

export type ReceivedSpan = z.output<typeof Span> & { service: unknown };
export type OtlpReceiver = Awaited<ReturnType<typeof startOtlpReceiver>>;

/** Starts the collector. The caller must call `close()`. */
export async function startOtlpReceiver() {
  const spans: ReceivedSpan[] = [];
  const refused: string[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const parsed = Request.safeParse(JSON.parse(Buffer.concat(chunks).toString('utf8')));
      const isRight = request.method === 'POST' && request.url === '/v1/traces' && parsed.success;
      if (!isRight) refused.push(`${request.method} ${request.url}: ${parsed.error?.message}`);
      for (const { resource, scopeSpans } of parsed.data?.resourceSpans ?? []) {
        const service = resource.attributes['service.name'];
        const found = scopeSpans.flatMap((scope) => scope.spans);
        spans.push(...found.map((span) => ({ ...span, service })));
      }
      response.writeHead(isRight ? 200 : 400, { 'content-type': 'application/json' }).end('{}');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : 0;
  return {
    /** Value for OTEL_EXPORTER_OTLP_ENDPOINT. */
    url: `http://127.0.0.1:${port}`,
    spans,
    /** Requests that are not a POST of valid OTLP to /v1/traces, one text each. */
    refused,
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
