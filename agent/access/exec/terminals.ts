/** Loads the terminal service when the first terminal is opened, to save memory in idle agents. */
import type { Clock } from '#shared/runtime/clock.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { ExecEngine } from '../../containers/engine/exec.ts';
import type { Terminals } from './terminal.service.ts';

/** Returns null if the pod does not exist; `containerId` is null while it is not running. */
export type TerminalPod = (podId: string) => { containerId: string | null; user: string } | null;

export type TerminalPorts = {
  /** Returns the engine that starts programs in pods. Called once. */
  execEngine(): Promise<ExecEngine>;
  executorId: string;
  clock: Clock;
  log: Log;
  terminalPod: TerminalPod;
};

export type TerminalHost = {
  load(): Promise<Terminals>;
  /** Sends SIGHUP to shells that an earlier agent process left. Call it before any terminal is opened. */
  endLeftovers(containerIds: readonly string[]): Promise<void>;
  /** Sends SIGHUP to every shell; resolves within a second even if shells ignore the signal. */
  close(): Promise<void>;
};

export function createTerminalHost(ports: TerminalPorts): TerminalHost {
  let loading: Promise<Terminals> | null = null;
  let ending = Promise.resolve();

  async function endLeftovers(containerIds: readonly string[]): Promise<void> {
    if (containerIds.length === 0) return;
    const { hangUpLeftovers, TERMINAL_MARK } = await import('./container-process.ts');
    const mark = { name: TERMINAL_MARK, value: ports.executorId } as const;
    const count = hangUpLeftovers([mark], containerIds);
    if (count > 0) ports.log.info({ count }, 'ended leftover terminals of a killed agent');
  }

  async function start(): Promise<Terminals> {
    const { createTerminals } = await import('./terminal.service.ts');
    return createTerminals({ ...ports, engine: await ports.execEngine() });
  }

  return {
    async load() {
      // A new terminal could otherwise be mistaken for a leftover.
      await ending.catch(() => undefined);
      loading ??= start();
      return loading;
    },
    endLeftovers(containerIds) {
      ending = endLeftovers(containerIds);
      return ending;
    },
    async close() {
      await (await loading)?.close();
    },
  };
}
