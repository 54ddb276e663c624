/** Debian's docker-registry with tiny images that the test pushes through the real engine. */
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runCommand } from '#shared/runtime/run-command.ts';
import { eventually } from '../eventually.ts';
import { freePorts } from '../free-ports.ts';

/** Two zero blocks: an empty tar archive. */
const EMPTY_TAR = '\0'.repeat(1024);
const COMMAND_BOUNDS = { timeoutMs: 120_000, maxOutputBytes: 1024 * 1024 };

/** Login of a private registry, and the line for it in an htpasswd file (bcrypt). */
export const REGISTRY_LOGIN = { username: 'podwright', password: 'pass-of-tests' };
const HTPASSWD = 'podwright:$2y$05$abcdefghijklmnopqrstuuK/rT7VYCdeM4Is1/AI4QX6vhrgiP1bC';

export type ImageRegistry = Awaited<ReturnType<typeof startImageRegistry>>;

/**
 * Listens on a free loopback port; without a login, or with REGISTRY_LOGIN only. `close` also removes the pushed images
 * from the engine.
 */
export async function startImageRegistry({ isPrivate = false } = {}) {
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
${isPrivate ? `auth: { htpasswd: { realm: tests, path: ${join(folder, 'htpasswd')} } }` : ''}
`,
  );
  writeFileSync(join(folder, 'htpasswd'), `${HTPASSWD}\n`);
  const settings = join(folder, 'docker');
  mkdirSync(settings);
  const { username, password } = REGISTRY_LOGIN;
  const auth = Buffer.from(`${username}:${password}`).toString('base64');
  const auths = isPrivate ? { [host]: { auth } } : {};
  writeFileSync(join(settings, 'config.json'), JSON.stringify({ auths }));
  const child = spawn('docker-registry', ['serve', config], { stdio: 'ignore' });
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const pushed = new Set<string>();
  await eventually('the registry', async () => {
    const answer = await fetch(`http://${host}/v2/`).catch(() => null);
    return answer !== null;
  });

  async function docker(args: readonly string[], input?: string): Promise<string> {
    const bounds = input === undefined ? COMMAND_BOUNDS : { ...COMMAND_BOUNDS, input };
    const all = ['--config', settings, ...args];
    const { exitCode, stdout, stderr } = await runCommand('docker', all, bounds);
    if (exitCode !== 0) throw new Error(`docker ${args.join(' ')}: ${stderr}`);
    return stdout.trim();
  }

  async function publishTag(reference: string, name: string): Promise<string> {
    pushed.add(reference);
    const said = await docker(['push', reference]);
    const digest = /digest: (sha256:[0-9a-f]{64})/.exec(said)?.[1];
    if (digest === undefined) throw new Error(`no digest in ${said}`);
    pushed.add(`${host}/${name}@${digest}`);
    return digest;
  }

  return {
    host,
    /** Publishes the files in `folder` as `name:tag` and removes the image from the engine; returns its digest. */
    async publishFiles(name: string, tag: string, folder: string): Promise<string> {
      const archive = join(settings, 'files.tar');
      const owner = ['--owner=0', '--group=0'];
      await runCommand('tar', ['-C', folder, ...owner, '-cf', archive, '.'], COMMAND_BOUNDS);
      const reference = `${host}/${name}:${tag}`;
      await docker(['import', archive, reference]);
      const digest = await publishTag(reference, name);
      await docker(['rmi', reference]);
      return digest;
    },
    /** Publishes an image without files and with these Dockerfile lines as `name:tag`; returns its digest. */
    async publish(name: string, tag: string, changes: readonly string[]): Promise<string> {
      const reference = `${host}/${name}:${tag}`;
      const flags = changes.flatMap((change) => ['--change', change]);
      await docker(['import', ...flags, '-', reference], EMPTY_TAR);
      return publishTag(reference, name);
    },
    /** Pushes the engine's image `name:tag` to this registry; returns its digest. */
    push: (name: string, tag: string): Promise<string> =>
      publishTag(`${host}/${name}:${tag}`, name),
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
