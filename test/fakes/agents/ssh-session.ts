/** Sessions of the OpenSSH client that last until they are cut, and send back every line. */
import type { PodView } from '#shared/api/agent/pod.ts';
import type { SshHost } from './ssh-host.ts';

export type LongSession = Awaited<ReturnType<typeof longSession>>;

/** Resolves once the session is established. */
export async function longSession(host: SshHost, view: PodView, key = host.key) {
  const child = host.spawnSsh(view, ['echo up; cat'], key);
  const closed = new Promise<number | null>((resolve) => child.once('close', resolve));
  await new Promise<void>((resolve, reject) => {
    child.stdout.once('data', () => resolve());
    child.once('close', (code) => reject(new Error(`the session ended with ${code}`)));
  });
  return { child, closed };
}

/** Sends a line and returns what the session sends next. */
export async function echoes(session: LongSession, word: string): Promise<string> {
  const heard = new Promise<string>((resolve) =>
    session.child.stdout.once('data', (data: Buffer) => resolve(data.toString())),
  );
  session.child.stdin.write(`${word}\n`);
  return heard;
}
