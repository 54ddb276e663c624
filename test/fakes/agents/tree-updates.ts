/**
 * Publishes releases of the agent to a host with systemd, as a validator does: pushes images to a registry that
 * requires a login, and serves the signed manifest from a web server on the host. A key set authorises the signing
 * key. The services read the key set and the login as systemd credentials.
 */
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { systemClock } from '#shared/runtime/clock.ts';
import { KeySet, signKeySet } from '#shared/signing/key-set.ts';
import { createSigner } from '#shared/signing/sr25519.ts';
import { signUpdate } from '#shared/updates/update-manifest.ts';
import { REGISTRY_LOGIN, startImageRegistry } from '../external/image-registry.ts';
import type { SystemdHost } from '../external/systemd-host.ts';

const REPOSITORY = 'podwright/agent';
const PORT = 8099;
const VALID_MS = 3_600_000;
/** Runs the checkout's Node, which the small releases do not contain. */
const NODE = '#!/bin/sh\nexec /src/node_modules/.bin/node "$@"\n';

/**
 * Returns a program that runs the JavaScript `script` in place of the agent if it is started without arguments. With an
 * argument, such as `--check-config`, the program exits with status 0.
 */
const programOf = (script: string) => `
import { execFileSync } from 'node:child_process';
import { createServer } from 'node:http';
if (process.argv.length === 2) { ${script} }
`;

/** Behaves like an updated agent: it reports the same executor, is ready, and notifies systemd. */
export const WORKS: string = programOf(`
  const answer = JSON.stringify({
    version: '9.9.9', executor_id: process.env.AGENT_EXECUTOR_ID, started_ms: 1, simulated: false,
  });
  createServer((_, response) => response.end(answer)).listen(8080, '127.0.0.1');
  const tell = (...words) => execFileSync('systemd-notify', words);
  tell('READY=1');
  setInterval(() => tell('WATCHDOG=1'), 500);
`);
/** Program that runs in place of the SSH gateway and only notifies systemd. */
const GATEWAY = programOf(`
  const tell = (...words) => execFileSync('systemd-notify', words);
  console.log('gateway of a new release');
  tell('READY=1');
  setInterval(() => tell('WATCHDOG=1'), 500);
`);
export const ENDS: string = programOf(`console.log('this release cannot start'); process.exit(1);`);

export type TreeUpdates = Awaited<ReturnType<typeof startTreeUpdates>>;

export async function startTreeUpdates(host: SystemdHost) {
  const registry = await startImageRegistry({ isPrivate: true });
  const [root, signer] = [
    createSigner(new Uint8Array(32).fill(2)),
    createSigner(new Uint8Array(32).fill(3)),
  ];
  const image = `${registry.host}/${REPOSITORY}`;
  let sequence = 0;
  await host.mustRun(`mkdir -p /root/updates && systemd-run --quiet --unit=updates \\
    busybox httpd -f -p 127.0.0.1:${PORT} -h /root/updates`);

  async function imageOf(program: string): Promise<string> {
    const folder = mkdtempSync(join(tmpdir(), 'podwright-release-'));
    const put = (path: string, text: string, mode = 0o644) => {
      const file = join(folder, 'opt/podwright', path);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, text);
      chmodSync(file, mode);
    };
    try {
      put('package.json', `{"version": "9.9.${sequence}", "type": "module"}`);
      put('agent/main.ts', program);
      put('agent/updates/main.ts', '');
      put('agent/ssh-gateway/main.ts', GATEWAY);
      put('node_modules/.bin/node', NODE, 0o755);
      return await registry.publishFiles(REPOSITORY, 'stable', folder);
    } finally {
      rmSync(folder, { recursive: true });
    }
  }

  return {
    /** Environment that the agent needs to install updates. */
    variables: `AGENT_TRUSTED_KEYS=${root.hotkey}=validator-control
AGENT_KEY_SET=/run/credentials/podwright-agent.service/keys
AGENT_UPDATE_LOGIN_FILE=/run/credentials/podwright-agent.service/registry
AGENT_UPDATE_URL=http://127.0.0.1:${PORT}/digest
AGENT_UPDATE_IMAGE=${image}
AGENT_UPDATE_INTERVAL_S=1
AGENT_UPDATE_PROBATION_S=2`,
    /** Credentials of the services, by name. */
    credentials: {
      keys: JSON.stringify(signKeySet(keySetOf(signer.hotkey), root)),
      registry: JSON.stringify(REGISTRY_LOGIN),
    },
    /** Publishes a release whose agent is `program`; returns its digest. */
    async release(program: string): Promise<string> {
      sequence += 1;
      const digest = await imageOf(program);
      const nowMs = systemClock.now();
      const answer = await signUpdate(
        {
          v: 1,
          kind: 'image-digest',
          image,
          tag: 'stable',
          digest,
          platforms: {},
          version: 'stable',
          sequence,
          minSequence: 0,
          channel: 'stable',
          notes: '',
          rolloutPermille: 1_000,
          issuedAt: nowMs,
          expiresAt: nowMs + VALID_MS,
          minAgent: '0.0.0',
          previousDigest: null,
        },
        signer,
        signer.hotkey,
      );
      await host.mustRun(`cd /root/updates && cat >new <<'TEXT' && mv new digest
${JSON.stringify(answer)}
TEXT`);
      return digest;
    },
    async close(): Promise<void> {
      await registry.close();
    },
  };
}

function keySetOf(hotkey: string): KeySet {
  const window = { not_before: 0, not_after: 2 ** 43 };
  const key = { key_id: 'in-a-set', ss58: hotkey, roles: ['validator-control'], ...window };
  return KeySet.parse({ v: 1, kind: 'key-set', sequence: 1, keys: [key], revoked: [] });
}
