/** Debian's own docker-registry, real, with tiny images that the test pushes through the real engine. */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runCommand } from '#shared/run-command.ts';
import { eventually } from './eventually.ts';
import { freePorts } from './free-ports.ts';

/** Two zero blocks: an empty tar archive. */
const EMPTY_TAR = '\0'.repeat(1024);
const COMMAND_BOUNDS = { timeoutMs: 60_000, maxOutputBytes: 1024 * 1024 };

export type ImageRegistry = Awaited<ReturnType<typeof startImageRegistry>>;

/** Listens on a free port of the loopback address; `close` removes what was pushed from the engine, too. */
export async function startImageRegistry() {
  const folder = mkdtempSync(join(tmpdir(), 'podwright-registry-'));
  const { first: port } = await freePorts(1);
  const host = `127.0.0.1:${port}`;
  const config = join(folder, 'config.yml');
  writeFileSync(
    config,
    `version: 0.1
storage: { filesystem: { rootdirectory: ${folder} } }
http: { addr: ${host} }
log: { level: error, accesslog: { disabled: true } }
`,
  );
  const child = spawn('docker-registry', ['serve', config], { stdio: 'ignore' });
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const pushed = new Set<string>();
  await eventually('the registry', async () => {
    const answer = await fetch(`http://${host}/v2/`).catch(() => null);
    return answer?.status === 200;
  });

  async function docker(args: readonly string[], input?: string): Promise<string> {
    const bounds = input === undefined ? COMMAND_BOUNDS : { ...COMMAND_BOUNDS, input };
    const { exitCode, stdout, stderr } = await runCommand('docker', args, bounds);
    if (exitCode !== 0) throw new Error(`docker ${args.join(' ')}: ${stderr}`);
    return stdout.trim();
  }

  return {
    host,
    /** Makes `name:tag` an image without files, with these lines of a Dockerfile; its digest. */
    async publish(name: string, tag: string, changes: readonly string[]): Promise<string> {
      const reference = `${host}/${name}:${tag}`;
      const flags = changes.flatMap((change) => ['--change', change]);
      await docker(['import', ...flags, '-', reference], EMPTY_TAR);
      pushed.add(reference);
      const said = await docker(['push', reference]);
      const digest = /digest: (sha256:[0-9a-f]{64})/.exec(said)?.[1];
      if (digest === undefined) throw new Error(`no digest in ${said}`);
      pushed.add(`${host}/${name}@${digest}`);
      return digest;
    },
    async close(): Promise<void> {
      child.kill('SIGKILL');
      await exited;
      for (const reference of pushed) {
        await runCommand('docker', ['rmi', '--force', reference], COMMAND_BOUNDS);
      }
      rmSync(folder, { recursive: true });
    },
  };
}
