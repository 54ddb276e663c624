/** Jobs of the Philly trace: one JSON array, read as a stream. */
import { createReadStream } from 'node:fs';
import { JSONParser } from '@streamparser/json';
import { z } from 'zod';
import { parseIsoTime } from '#shared/runtime/clock.ts';
import { ConfigError } from '#shared/runtime/config.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import { jobOf } from './csv-formats.ts';
import { TraceError, type TraceRow } from './trace-rows.ts';

const MAX_BYTES = 512 * 1024 * 1024;
const MAX_ATTEMPTS = 1_000;
const SECOND_MS = 1_000;

/** Times without a zone: only their differences are used. */
const Time = z
  .string()
  .nullable()
  .transform((text, context) => {
    if (text === null || text === '' || text === 'None') return null;
    const ms = parseIsoTime(text.replace(' ', 'T'));
    if (ms !== null) return ms / SECOND_MS;
    context.addIssue({ code: 'custom', message: `${JSON.stringify(text)} is not a time` });
    return z.NEVER;
  });
const Job = z.object({
  submitted_time: Time,
  attempts: z
    .array(
      z.object({
        start_time: Time,
        end_time: Time,
        detail: z.array(z.object({ gpus: z.array(z.string()).max(64) })).max(MAX_ATTEMPTS),
      }),
    )
    .max(MAX_ATTEMPTS),
});

/** Yields a row for each host of each job. Throws ConfigError that names the file, the line and the field. */
export async function* phillyJobs(file: string): AsyncGenerator<TraceRow> {
  const lines = createLineCounter();
  let ready: { value: unknown; line: number }[] = [];
  const parser = new JSONParser({ paths: ['$.*'], keepStack: false });
  parser.onValue = ({ value }) => void ready.push({ value, line: lines.lineAt() });
  let bytes = 0;
  try {
    for await (const chunk of createReadStream(file)) {
      const part = chunk as Buffer;
      bytes += part.length;
      if (bytes > MAX_BYTES) throw new ConfigError(`${file}: larger than ${MAX_BYTES} bytes`);
      // Line by line, so that a job is known by the line on which it ends.
      for (const text of lines.split(part)) {
        parser.write(text);
        for (const { value, line } of ready) yield* rowsOf(value, { file, line });
        ready = [];
      }
    }
  } catch (error) {
    if (error instanceof ConfigError || error instanceof TraceError) throw error;
    throw new ConfigError(`${file}:${lines.lineAt()}: ${messageOf(error)}`, { cause: error });
  }
  if (!parser.isEnded) {
    throw new ConfigError(`${file}:${lines.lineAt()}: the file ends before its last job`);
  }
}

function rowsOf(value: unknown, at: { file: string; line: number }): TraceRow[] {
  const parsed = Job.safeParse(value);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw new TraceError(at, issue?.path.join('.') ?? '', issue?.message ?? '');
  }
  const { submitted_time: created, attempts } = parsed.data;
  const [first, last] = [attempts[0], attempts.at(-1)];
  const [began, ended] = [first?.start_time ?? null, last?.end_time ?? null];
  // Jobs that were never scheduled, or still ran at the end of the trace, have no duration.
  if (created === null || began === null || ended === null) return [null];
  const hosts = first?.detail ?? [];
  const job = { model: null, rentals: 1, created, durationS: ended - began };
  return hosts.map(({ gpus }) => jobOf({ ...job, gpus: gpus.length }));
}

const LINE_FEED = 0x0a;

/** Splits chunks after each line feed, and counts the lines that were returned. */
function createLineCounter() {
  let line = 1;
  return {
    lineAt: () => line,
    *split(chunk: Buffer): Generator<Buffer> {
      let from = 0;
      for (;;) {
        const feed = chunk.indexOf(LINE_FEED, from);
        if (feed === -1) break;
        yield chunk.subarray(from, feed + 1);
        line += 1;
        from = feed + 1;
      }
      if (from < chunk.length) yield chunk.subarray(from);
    },
  };
}
