import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { NotebookView } from '#shared/api/agent/notebook.ts';
import type { PodView } from '#shared/api/agent/pod.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { mustRun } from '../../../test/fakes/agents/real-host.ts';
import { type SshHost, startSshHost } from '../../../test/fakes/agents/ssh-host.ts';
import { eventually } from '../../../test/fakes/eventually.ts';
import {
  PIP_INSTALLS,
  WITH_JUPYTER,
  withPython,
} from '../../../test/fakes/external/stand-in-jupyter.ts';

const PORT = 8888;
const TOKEN = Buffer.from(systemRandom.bytes(16)).toString('hex');
const WAIT_MS = 40_000;

let host: SshHost;

beforeAll(async () => {
  host = await startSshHost();
});
afterAll(() => host.stop());

/** Starts a pod that runs `script` first, to simulate the contents of an image, then waits. */
function launch(script: string, ports = [PORT]): Promise<PodView> {
  const command = ['sh', '-c', `${script}\nexec sleep 100000`];
  return host.launch({ command, internal_ports: [22, ...ports] });
}

function ask(pod: PodView, request = 1, internal_port = PORT): Promise<PodView> {
  return host.client().postNotebook(pod.id, { internal_port, request, token: TOKEN });
}

function until(pod: PodView, wanted: (notebook: NotebookView) => boolean): Promise<NotebookView> {
  return eventually(
    `the notebook of ${pod.id}`,
    async () => {
      const { notebook } = await host.client().getPod(pod.id);
      return notebook !== null && wanted(notebook) && notebook;
    },
    WAIT_MS,
  );
}

const isSettled = ({ status }: NotebookView) => status === 'running' || status === 'failed';
const runs = ({ status }: NotebookView) => status === 'running';

/** HTTP status of the server at the host port; null if it does not answer. */
async function statusFor(pod: PodView, headers: Record<string, string> = {}) {
  const url = `http://127.0.0.1:${pod.ports[String(PORT)]}/api/status`;
  return fetch(url, { headers }).then(
    ({ status }) => status,
    () => null,
  );
}

function inside(pod: PodView, ...argv: string[]): Promise<string> {
  return mustRun('docker', 'exec', pod.container_id ?? '', ...argv);
}

describe('a notebook server', () => {
  let pod: PodView;

  beforeAll(async () => {
    pod = await launch(WITH_JUPYTER);
    expect((await ask(pod)).notebook).toMatchObject({ request: 1, internal_port: PORT });
    await until(pod, isSettled);
  });

  it('accepts only its token at the host port', async () => {
    const { notebook } = await host.client().getPod(pod.id);
    expect(notebook).toMatchObject({ status: 'running', path: '/lab', reason: null });
    expect(await statusFor(pod, { authorization: `token ${TOKEN}` })).toBe(200);
    expect(await statusFor(pod)).toBe(403);
  });

  it('does not reveal its token in process lists, its environment or views', async () => {
    expect(await inside(pod, 'sh', '-c', 'cat /proc/[0-9]*/cmdline')).not.toContain(TOKEN);
    const settings = await inside(pod, 'stat', '-c', '%a', '/opt/podwright/notebook.json');
    expect(settings.trim()).toBe('600');
    expect(JSON.stringify(await host.client().listPods())).not.toContain(TOKEN);
  });

  it('is not affected by a repeated request', async () => {
    const before = await inside(pod, 'busybox', 'pidof', 'nc');
    await ask(pod);
    expect(await inside(pod, 'busybox', 'pidof', 'nc')).toBe(before);
  });

  it('keeps running when the agent stops, and is watched by the next agent process', async () => {
    const before = await inside(pod, 'busybox', 'pidof', 'nc');
    await host.killAgent();
    expect(await statusFor(pod)).toBe(403);
    await host.startAgentAgain();
    expect(await inside(pod, 'busybox', 'pidof', 'nc')).toBe(before);
    await inside(pod, 'killall', 'nc');
    await until(pod, ({ status }) => status === 'restarting');
    expect(await until(pod, isSettled)).toMatchObject({ status: 'running' });
    expect(await statusFor(pod, { authorization: `token ${TOKEN}` })).toBe(200);
  });

  it('is restarted after a reboot of its pod', async () => {
    await host.client().rebootPod(pod.id, 1);
    await host.readyPod(pod.id, (view) => view.reboots_done === 1 && view.phase === 'running');
    await eventually(
      'its answer',
      async () => (await statusFor(pod, { authorization: `token ${TOKEN}` })) === 200,
      WAIT_MS,
    );
    expect(await until(pod, isSettled)).toMatchObject({ status: 'running' });
  });

  it('is ended if it accepts requests without a token', async () => {
    await inside(pod, 'touch', '/tmp/open');
    await inside(pod, 'killall', 'nc');
    await until(pod, ({ status }) => status === 'restarting');
    const ended = await until(pod, ({ message }) => message.includes('without its token'));
    expect(ended.status).toBe('restarting');
    await inside(pod, 'rm', '/tmp/open');
    await until(pod, runs);
  });
});

describe('a pod that cannot run a notebook', () => {
  it('reports that it has neither Python nor a package tool, and is not changed', async () => {
    const pod = await host.launch({ internal_ports: [22, PORT] });
    await ask(pod);
    expect(await until(pod, isSettled)).toMatchObject({
      status: 'failed',
      reason: 'NotebookNoPython',
      step: null,
    });
    const after = await host.client().getPod(pod.id);
    expect(after).toMatchObject({ phase: 'running', container_id: pod.container_id });
    expect((await host.ssh(pod, ['echo in'])).stdout.toString()).toBe('in\n');
  });

  it('rejects a request for a port that it does not publish, or for the SSH port', async () => {
    const pod = await host.launch();
    await expect(ask(pod)).rejects.toMatchObject({ code: 'bad_request' });
    await expect(ask(pod, 1, 22)).rejects.toMatchObject({ code: 'bad_request' });
    expect((await host.client().getPod(pod.id)).notebook).toBeNull();
  });
});

describe('a failed bring-up', () => {
  it('reports a port in use; a request for another port then succeeds', async () => {
    const pod = await launch(`${WITH_JUPYTER}httpd -p 8000 -h /www`, [8000, PORT]);
    await ask(pod, 1, 8000);
    expect(await until(pod, isSettled)).toMatchObject({ reason: 'NotebookPortBusy' });
    await ask(pod, 2);
    expect(await until(pod, ({ request }) => request === 2)).toBeDefined();
    expect(await until(pod, isSettled)).toMatchObject({ status: 'running', internal_port: PORT });
  });

  it('reports the last output of a server that ended', async () => {
    const pod = await launch(`${WITH_JUPYTER}touch /tmp/broken`);
    await ask(pod);
    const { reason, message } = await until(pod, isSettled);
    expect(reason).toBe('NotebookNotReady');
    expect(message).toContain('cannot begin: no kernel');
  });

  it('reports that packages could not be fetched', async () => {
    const pod = await launch(withPython("echo 'Temporary failure in name resolution' >&2; exit 1"));
    await ask(pod);
    const { reason, message } = await until(pod, isSettled);
    expect(reason).toBe('NotebookSourceUnreachable');
    expect(message).toContain('Temporary failure in name resolution');
  });
});

describe('an installation', () => {
  const installs = async (pod: PodView) => /root +sleep 98765$/m.test(await inside(pod, 'ps'));

  it('that an agent left unfinished is ended and repeated by the next agent process', async () => {
    const pod = await launch(withPython('echo $$ >/tmp/pid; exec sleep 98765'));
    await ask(pod);
    await until(pod, ({ step }) => step === 'install');
    await eventually('the installation', () => installs(pod));
    await host.killAgent();
    expect(await installs(pod)).toBe(true);
    await inside(pod, 'sh', '-c', `echo '${PIP_INSTALLS}' >/tmp/pip`);
    await host.startAgentAgain();
    expect(await until(pod, isSettled)).toMatchObject({ status: 'running', path: '/lab' });
    expect(await installs(pod)).toBe(false);
  });

  it('is replaced by a newer request', async () => {
    const pod = await launch(withPython('exec sleep 98765'), [PORT, 8889]);
    await ask(pod, 1, 8889);
    await until(pod, ({ step }) => step === 'install');
    await inside(pod, 'sh', '-c', `echo '${PIP_INSTALLS}' >/tmp/pip`);
    await ask(pod, 2);
    const done = await until(pod, ({ status, request }) => request === 2 && status === 'running');
    expect(done).toMatchObject({ internal_port: PORT });
    expect(await installs(pod)).toBe(false);
  });
});
