/** One process in a container behind one channel: its streams, its end, and its end when the client vanishes. */
import type { ServerChannel } from 'ssh2';
import type { Clock } from '#shared/clock.ts';
import { messageOf } from '#shared/errors.ts';
import type { Log } from '#shared/log.ts';
import type { ExecEngine, ExecProcess, ExecRequest } from '../docker/exec.ts';
import type { TerminalSize } from './commands.ts';
import { hangUp, type SignalName, signalGroup } from './container-process.ts';
import { type Meter, pumpInput, pumpOutput } from './pump.ts';

export type ProcessPorts = {
  engine: ExecEngine;
  clock: Clock;
  log: Log;
  /** Told of work that the gateway's end waits for. */
  track(work: Promise<unknown>): void;
};

export type ProcessChannel = {
  signal(name: SignalName): void;
  resize(size: TerminalSize): void;
  /** Resolves with the exit status once the process has ended, or null when the client left before. */
  ended: Promise<number | null>;
};

/** From the hang-up to the kill of a process whose client has gone. */
const HANG_UP_GRACE_MS = 5_000;
/** The engine tells the exit status a moment after the end of the output. */
const EXIT_POLL_MS = 10;
const EXIT_POLLS = 300;
/** What a shell would answer for a command that cannot be started. */
const NOT_STARTED = 126;

/** Starts it; a start that fails is told on the channel's stderr. `gone` aborts when the client leaves. */
export function runOnChannel(
  ports: ProcessPorts,
  options: {
    channel: ServerChannel;
    request: ExecRequest;
    size: TerminalSize | null;
    meter: Meter;
    gone: AbortSignal;
  },
): ProcessChannel {
  const { engine, clock, log } = ports;
  const { channel, request, meter, gone } = options;
  const starting = engine.start(request);
  let wanted = options.size;
  let isSizing = false;

  async function withProcess(work: (process: ExecProcess, pid: number) => unknown): Promise<void> {
    try {
      const process = await starting;
      const { pid, exitCode } = await process.inspect();
      if (exitCode === null) await work(process, pid);
    } catch (error) {
      log.debug({ detail: messageOf(error) }, 'a process could not be reached');
    }
  }

  /** One at a time, so that the last one wins; those in between are left out. */
  async function applySizes(): Promise<void> {
    if (isSizing) return;
    isSizing = true;
    try {
      const process = await starting;
      while (wanted !== null) {
        const size = wanted;
        wanted = null;
        await process.resize(size);
      }
    } catch (error) {
      log.debug({ detail: messageOf(error) }, 'a terminal could not be resized');
    }
    isSizing = false;
  }

  const abandon = () =>
    withProcess(async (process, pid) => {
      const target = { pid, containerId: request.containerId };
      hangUp(target);
      for (let waited = 0; waited < HANG_UP_GRACE_MS; waited += HANG_UP_GRACE_MS / 10) {
        await clock.sleep(HANG_UP_GRACE_MS / 10);
        if ((await process.inspect()).exitCode !== null) return;
      }
      signalGroup(target, 'KILL');
    });

  async function run(): Promise<number | null> {
    try {
      const process = await starting;
      gone.addEventListener('abort', process.close, { once: true });
      if (gone.aborted) process.close();
      pumpInput(channel, process.input, { meter, end: !request.tty });
      void applySizes();
      await pumpOutput(process.output, channel, { meter, gone });
      gone.removeEventListener('abort', process.close);
      if (!gone.aborted) return await finish(process);
      await abandon();
    } catch (error) {
      log.warn({ detail: messageOf(error) }, 'a process in a pod could not be run');
      if (gone.aborted) return null;
      channel.stderr.write('podwright: this cannot be run in the pod now\r\n');
      return end(NOT_STARTED);
    }
    return null;
  }

  async function finish(process: ExecProcess): Promise<number> {
    for (let poll = 0; poll < EXIT_POLLS; poll += 1) {
      const { exitCode } = await process.inspect();
      if (exitCode !== null) return end(exitCode);
      await clock.sleep(EXIT_POLL_MS);
    }
    // It has closed its outputs and goes on: nobody would hear of it any more.
    return end(0);
  }

  function end(exitCode: number): number {
    channel.exit(exitCode);
    channel.end();
    return exitCode;
  }

  const ended = run();
  ports.track(ended);
  return {
    ended,
    signal(name) {
      void withProcess((_, pid) => signalGroup({ pid, containerId: request.containerId }, name));
    },
    resize(size) {
      wanted = size;
      void applySizes();
    },
  };
}
