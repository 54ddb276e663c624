/** Messages of a pod's log, and the entries of a view that they become. Pure. */
import { type LineText, lineText } from './log-text.ts';

/** A line of a log. */
export type LogLine = LineText & {
  kind: 'line';
  /** Position in the log, after which the API continues. */
  id: string;
  /** Time of the API; UTC. */
  at: string;
  isError: boolean;
  /** Index of the pod in a view of several pods. */
  source: number;
};

/** Note of the view between lines: missing lines, restarts, interruptions. */
export type LogMark = {
  kind: 'mark';
  text: string;
  /** Time of the line before it; empty without one. */
  at: string;
  /** True if lines may be missing at this place. */
  isGap: boolean;
  source: number;
};

export type LogEntry = LogLine | LogMark;

/** Reason with which the API ended a stream. */
export type LogEnd = { kind: 'end'; reason: string };

/** Parses messages; keep-alives have no entry. A malformed message becomes a mark, because lines may be missing. */
export function parseMessages(messages: readonly string[], source: number): (LogEntry | LogEnd)[] {
  return framesOf(messages).flatMap((frame) => entriesOf(frame, source));
}

/** One call of the parser for all messages, because a busy log has thousands in a second. */
function framesOf(messages: readonly string[]): unknown[] {
  try {
    return JSON.parse(`[${messages.join(',')}]`);
  } catch {
    return messages.map(frameOf);
  }
}

function frameOf(message: string): unknown {
  try {
    return JSON.parse(message);
  } catch {
    return null;
  }
}

function entriesOf(frame: unknown, source: number): (LogEntry | LogEnd)[] {
  if (typeof frame !== 'object' || frame === null) return [unreadable(source)];
  const { log, id, ts, stream, meta, reason, dropped } = frame as Record<string, unknown>;
  if (typeof log === 'string' && typeof id === 'string') {
    const at = typeof ts === 'string' ? ts : '';
    return [{ kind: 'line', ...lineText(log), id, at, isError: stream === 'stderr', source }];
  }
  const why = typeof reason === 'string' ? reason : '';
  switch (meta) {
    case undefined:
      return [];
    case 'end':
      return [{ kind: 'end', reason: why }];
    case 'gap':
      return [mark(gapText(why, dropped), true, source)];
    case 'restart':
      return [mark('The container has restarted.', false, source)];
    default:
      return [];
  }
}

const unreadable = (source: number): LogMark =>
  mark('A message of the server could not be read. Lines may be missing here.', true, source);

/** Creates a mark; `withTimes` sets its time. */
export function mark(text: string, isGap: boolean, source: number): LogMark {
  return { kind: 'mark', text, at: '', isGap, source };
}

function gapText(reason: string, dropped: unknown): string {
  const count = typeof dropped === 'number' && dropped > 0 ? dropped : null;
  const missing =
    count === null
      ? 'Lines may be missing here'
      : `About ${count.toLocaleString('en-US')} lines are missing here`;
  return `${missing}: ${GAP_REASONS[reason] ?? (reason || 'the server gives no reason')}.`;
}

const GAP_REASONS: Readonly<Record<string, string>> = {
  node_lost: 'the connection to the node was interrupted',
  'the engine stopped answering': 'the node did not answer',
  rotated: 'the node no longer stores them',
  'rotated away': 'the node no longer stores them',
  'older output is gone': 'the node no longer stores them',
  unknown_id: 'the log was replaced',
  'container replaced': 'the container was replaced',
  'build output dropped': 'the build wrote more than the node stores',
};

export function isLine(entry: LogEntry | LogEnd): entry is LogLine {
  return entry.kind === 'line';
}

/** Sets each mark to the time of the line before it. `before` is the time of the line before all entries. */
export function withTimes(entries: readonly LogEntry[], before: string): LogEntry[] {
  let at = before;
  return entries.map((entry) => {
    if (entry.kind === 'mark') return { ...entry, at };
    at = entry.at;
    return entry;
  });
}

/** Returns true if the first time is later. Fractions of seconds may have different lengths. */
export function isLater(at: string, than: string): boolean {
  return at.replace(/Z$/, '') > than.replace(/Z$/, '');
}

/** Position of a line: the parts of `<container>.<nanoseconds>.<number>`. */
const POSITION = /^(\w+)\.(\d{1,19})\.(\d{1,9})$/;

/** Returns true if the line with this id is not after the line `last` of the same log, so that it is a repeat. */
export function isRepeat(id: string, last: string): boolean {
  const [, log, time = '0', number = '0'] = POSITION.exec(id) ?? [];
  const [, lastLog, lastTime = '0', lastNumber = '0'] = POSITION.exec(last) ?? [];
  if (log === undefined || log !== lastLog) return id === last;
  const difference = BigInt(time) - BigInt(lastTime);
  return difference < 0n || (difference === 0n && Number(number) <= Number(lastNumber));
}
