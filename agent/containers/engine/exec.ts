/** Starts processes inside running containers, with their streams. */
import type { Duplex } from 'node:stream';
import { z } from 'zod';
import type { Clock } from '#shared/runtime/clock.ts';
import { createDockerClient, type Docker } from './docker-client.ts';
import { EngineError } from './engine.ts';
import { createEngineCall, DEADLINES_MS, unless } from './engine-call.ts';
import { logFrames } from './engine-stream.ts';

export type ExecRequest = {
  containerId: string;
  argv: readonly string[];
  environment: Readonly<Record<string, string>>;
  user: string;
  /** With a terminal, stdout and stderr are one stream. */
  tty: boolean;
  /**
   * Called with the engine's id of the process before the process starts, so that a later agent process can find it.
   */
  onCreated?(execId: string): void;
};

export type OutputChunk = { stream: 'stdout' | 'stderr'; data: Uint8Array };

export type ExecProcess = {
  /** Ending the stream closes the process's stdin. */
  input: Duplex;
  /** Ends when the process ends. The process blocks while the stream is not read. */
  output: AsyncIterable<OutputChunk>;
  resize(size: { rows: number; columns: number }): Promise<void>;
  /** `exitCode` is null until the process ends. `pid` is the process id on the host, 0 until the process runs. */
  inspect(): Promise<ExecState>;
  /** Closes the connection. The process continues. */
  close(): void;
};

/** A process without attached streams. */
export type DetachedRequest = Omit<ExecRequest, 'tty'>;

export type ExecState = z.output<typeof ExecAnswer>;
export type ExecEngine = ReturnType<typeof createExecEngine>;

const ExecAnswer = z
  .object({ Running: z.boolean(), ExitCode: z.int().nullable(), Pid: z.int() })
  .transform(({ Running, ExitCode, Pid }) => ({
    exitCode: Running ? null : ExitCode,
    pid: Pid,
  }));

const AddressesAnswer = z
  .object({
    NetworkSettings: z.object({
      Networks: z.record(
        z.string(),
        z.object({ IPAddress: z.string(), GlobalIPv6Address: z.string().default('') }),
      ),
    }),
  })
  .transform(({ NetworkSettings: { Networks } }) =>
    Object.values(Networks)
      .flatMap(({ IPAddress, GlobalIPv6Address }) => [IPAddress, GlobalIPv6Address])
      .filter((address) => address !== ''),
  );

/** Every method rejects with EngineError. */
export function createExecEngine(options: { socketPath: string; clock: Clock }) {
  const call = createEngineCall(options.clock);
  const docker = createDockerClient(options.socketPath);

  return {
    async start({ containerId, tty, onCreated, ...request }: ExecRequest): Promise<ExecProcess> {
      const container = docker.getContainer(containerId);
      const { exec } = await call(DEADLINES_MS.create, Created, async (abortSignal) => ({
        exec: await container.exec({
          ...execOptions(request),
          Tty: tty,
          AttachStdin: true,
          AttachStdout: true,
          AttachStderr: true,
          abortSignal,
        }),
      }));
      onCreated?.(exec.id);
      const { socket } = await call(DEADLINES_MS.start, Started, async () => ({
        socket: await exec.start({ hijack: true, stdin: true, Tty: tty }),
      }));
      // Without a listener, an error while no one reads or writes would end the agent.
      socket.on('error', () => undefined);
      return {
        input: socket,
        output: tty ? terminalOutput(socket) : logFrames(socket),
        async resize({ rows, columns }) {
          const resized = call(DEADLINES_MS.inspect, z.unknown(), (abortSignal) =>
            exec.resize({ h: rows, w: columns, abortSignal }),
          );
          // The process has not started or has ended.
          await unless(['refused', 'not_found', 'conflict'], undefined, resized);
        },
        inspect: () =>
          call(DEADLINES_MS.inspect, ExecAnswer, (abortSignal) => exec.inspect({ abortSignal })),
        close: () => void socket.destroy(),
      };
    },
    /** Starts a process with its streams at /dev/null. */
    async startDetached({ containerId, onCreated, ...request }: DetachedRequest): Promise<void> {
      const container = docker.getContainer(containerId);
      const { exec } = await call(DEADLINES_MS.create, Created, async (abortSignal) => ({
        exec: await container.exec({ ...execOptions(request), abortSignal }),
      }));
      onCreated?.(exec.id);
      const { socket } = await call(DEADLINES_MS.start, Started, async (abortSignal) => ({
        socket: await exec.start({ Detach: true, abortSignal }),
      }));
      socket.resume();
    },
    /** State of a process that this or an earlier agent process started; null if the engine does not know it. */
    inspect: (id: string): Promise<ExecState | null> =>
      unless(
        ['not_found'],
        null,
        call(DEADLINES_MS.inspect, ExecAnswer, (abortSignal) =>
          docker.getExec(id).inspect({ abortSignal }),
        ),
      ),
    /** Addresses of the container on its networks; empty if it does not exist. */
    addressesOf: (containerId: string): Promise<string[]> =>
      unless(
        ['not_found'],
        [],
        call(DEADLINES_MS.inspect, AddressesAnswer, (abortSignal) =>
          docker.getContainer(containerId).inspect({ abortSignal }),
        ),
      ),
  };
}

function execOptions({
  argv,
  environment,
  user,
}: Pick<ExecRequest, 'argv' | 'environment' | 'user'>) {
  const Env = Object.entries(environment).map(([name, value]) => `${name}=${value}`);
  return { Cmd: [...argv], Env, User: user };
}

type DockerExec = Awaited<ReturnType<ReturnType<Docker['getContainer']>['exec']>>;
const Created = z.object({ exec: z.custom<DockerExec>() });
const Started = z.object({ socket: z.custom<Duplex>() });

async function* terminalOutput(socket: Duplex): AsyncGenerator<OutputChunk> {
  try {
    for await (const data of socket) yield { stream: 'stdout', data };
  } catch (cause) {
    throw new EngineError('unavailable', 'terminal stream failed', { cause });
  }
}
