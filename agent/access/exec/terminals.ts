/** Terminals, loaded when the first is asked for: an idle agent does without. */
import type { Clock } from '#shared/runtime/clock.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { ExecEngine } from '../../containers/engine/exec.ts';
import type { Terminals } from './terminal.service.ts';

/** Null when there is no such pod; `containerId` is null while it does not run. */
export type TerminalPod = (podId: string) => { containerId: string | null; user: string } | null;

export type TerminalPorts = {
  /** Called once. */
  execEngine(): Promise<ExecEngine>;
  executorId: string;
  clock: Clock;
  log: Log;
  terminalPod: TerminalPod;
};

export type TerminalHost = {
  load(): Promise<Terminals>;
  /** Ends the shells that an agent before this one has left. Before any terminal is opened. */
  endLeftovers(containerIds: readonly string[]): Promise<void>;
  /** Hangs up on every shell; resolves soon, whatever they do. */
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
    if (count > 0) ports.log.info({ count }, 'hung up on terminals of an agent that was killed');
  }

  async function start(): Promise<Terminals> {
    const { createTerminals } = await import('./terminal.service.ts');
    return createTerminals({ ...ports, engine: await ports.execEngine() });
  }

  return {
    async load() {
      // Or it could be taken for one of them.
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
