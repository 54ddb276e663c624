/** A container's output through the engine's own stream: where its file is out of reach (remote or rootless engine). */
import { dataFrame } from '#shared/http/event-stream.ts';
import {
  type ContainerEngine,
  type ContainerState,
  EngineError,
} from '../containers/engine/engine.ts';
import type { StreamName } from './json-lines.ts';
import type { LogText } from './keep-alive.ts';
import { createLineFramer, type FramedLine, type LogPosition } from './log-frames.ts';
import { createResumeFilter } from './log-resume.ts';

export type Reading = {
  tail: number | 'all';
  sinceMs?: number;
  /** Lines up to this one were sent before. */
  after: LogPosition | null;
  follow: boolean;
  stream: StreamName | null;
};

/** `onLine` is told of every line before it is sent. The engine loses and doubles lines at rotations. */
export async function* readFromEngine(
  engine: Pick<ContainerEngine, 'containerLogs'>,
  state: ContainerState,
  { tail, sinceMs, after, follow, stream }: Reading,
  onLine: (at: LogPosition) => void,
  signal: AbortSignal,
): AsyncGenerator<LogText> {
  const framer = createLineFramer(state.id);
  const filter = createResumeFilter(after);
  const since = sinceMs === undefined ? {} : { sinceMs };
  const query = { tail, follow: follow && state.status === 'running', ...since };

  function toSend(lines: FramedLine[]): LogText {
    let text = '';
    for (const { frame, at } of lines) {
      const verdict = filter.judge(at);
      if (verdict === 'drop') continue;
      if (verdict === 'gap') text += dataFrame({ meta: 'gap', reason: 'older output is gone' });
      if (stream === null || frame.stream === stream) text += dataFrame(frame);
      // Before it is sent: a reader who leaves now does not come back to this stream.
      onLine(at);
    }
    return text;
  }

  try {
    for await (const chunk of engine.containerLogs(state.id, query, signal)) {
      const text = toSend(framer.push(chunk));
      if (text !== '') yield text;
    }
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    // A follower goes on when the engine is back, or with the container's successor. Output that merely
    // breaks off would look complete to any other reader.
    if (!follow) yield dataFrame({ meta: 'gap', reason: 'the engine stopped answering' });
  }
  const rest = toSend(framer.flush());
  if (rest !== '') yield rest;
}
