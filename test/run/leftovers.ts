/**
 * Finds and removes what a test run leaves on the host: processes, Docker objects, network namespaces, firewall chains
 * and mounts. Touches only objects with our labels that appeared during the run, and none that belongs to an agent
 * outside the run.
 */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/** Environment variable that marks the processes of a run; its value is the run's id. */
export const RUN_VARIABLE = 'PODWRIGHT_TEST_RUN';

/** Label of Docker objects that a test creates directly; its value is the run's id. */
const MANAGED_LABEL = 'io.podwright.managed';
const RUN_LABEL = 'io.podwright.test-run';
const EXECUTOR_LABEL = 'io.podwright.executor';
const LABEL_PREFIX = 'io.podwright.';

export type Run = {
  id: string;
  /** Temporary folder of the run. */
  folder: string;
  /** Session of the test process and of its children. */
  session: number;
};

/** State of the host before the run. */
export type Before = {
  objects: ReadonlySet<string>;
  namespaces: ReadonlySet<string>;
  chains: ReadonlySet<string>;
};

type DockerObject = {
  kind: 'container' | 'network' | 'volume' | 'image';
  id: string;
  name: string;
  labels: Record<string, string>;
};

/**
 * Kinds of Docker objects in the order of their removal: networks, volumes and images cannot be removed while a
 * container uses them.
 */
const KINDS = ['container', 'network', 'volume', 'image'] as const;

const REMOVAL_PASSES = 2;

export function hostState(): Before {
  return {
    objects: new Set(dockerObjects().map(({ id }) => id)),
    namespaces: new Set(networkNamespaces()),
    chains: new Set(firewallChains()),
  };
}

/** Kills the processes of the run and returns their command lines. */
export function killProcesses({ id, folder, session }: Run): string[] {
  const killed: string[] = [];
  for (const pid of processIds()) {
    const found = processOf(pid);
    if (found === null || pid === process.pid) continue;
    const isOurs =
      found.session === session ||
      found.environment.includes(`${RUN_VARIABLE}=${id}`) ||
      found.command.includes(folder);
    // The engine ends a process in a container when it removes the container.
    if (!isOurs || found.isContained) continue;
    try {
      process.kill(pid, 'SIGKILL');
      killed.push(found.command);
    } catch {
      // The process has ended in the meantime.
    }
  }
  return killed;
}

/**
 * Removes the run's Docker objects and returns the kinds and names of those that the tests should have removed. Agents
 * inside a test process cannot add the run's label to what they create. So while other tests run on this host, only
 * objects with the label are removed.
 */
export function removeObjects({ id }: Run, before: Before): string[] {
  const claimed = executorsOfLiveAgents(id);
  const isShared = otherTestsRun();
  const left = dockerObjects().filter(
    (object) =>
      object.labels[RUN_LABEL] === id ||
      (object.labels[RUN_LABEL] === undefined &&
        !isShared &&
        !before.objects.has(object.id) &&
        !claimed.has(object.labels[EXECUTOR_LABEL] ?? '')),
  );
  for (const kind of KINDS) {
    for (const object of left.filter((each) => each.kind === kind)) removeOfKind(kind, [object.id]);
  }
  return left.filter((object) => !isBuiltIn(object)).map(({ kind, name }) => `${kind} ${name}`);
}

/**
 * Removes the containers, networks and volumes with a label, such as `io.podwright.executor=ID`. A process calls it when
 * it exits, so it does not return before they are gone.
 */
export function removeLabelled(label: string): void {
  // A container whose creation was in progress may appear after the first pass.
  for (let pass = 0; pass < REMOVAL_PASSES; pass += 1) {
    for (const kind of ['container', 'network', 'volume'] as const) {
      const all = kind === 'container' ? ['--all'] : [];
      const list = command('docker', kind, 'ls', '--quiet', ...all, '--filter', `label=${label}`);
      removeOfKind(kind, lines(list));
    }
  }
}

/** Removes a container and the image of the same name. */
export function removeWithImage(name: string): void {
  removeOfKind('container', [name]);
  removeOfKind('image', [name]);
}

function removeOfKind(kind: DockerObject['kind'], ids: readonly string[]): void {
  if (ids.length === 0) return;
  const force = kind === 'network' ? [] : ['--force'];
  command('docker', kind, 'rm', ...force, ...(kind === 'container' ? ['-v'] : []), ...ids);
}

/** Returns true for an agent's built-in image, which agents leave in the engine for their next start. */
function isBuiltIn({ kind, labels }: DockerObject): boolean {
  return kind === 'image' && Object.keys(labels).join() === MANAGED_LABEL;
}

/**
 * Removes the network namespaces, firewall chains and mounts that the run added, and returns what it found. While other
 * tests run on this host, new namespaces and chains may be theirs and are left.
 */
export function removeHostChanges({ folder }: Run, before: Before): string[] {
  const isShared = otherTestsRun();
  const added = (names: readonly string[], known: ReadonlySet<string>) =>
    isShared ? [] : names.filter((name) => !known.has(name));
  const namespaces = added(networkNamespaces(), before.namespaces);
  for (const name of namespaces) command('ip', 'netns', 'del', name);
  const chains = added(firewallChains(), before.chains);
  removeChains(chains);
  const mounts = mountsBelow(folder);
  for (const path of mounts) command('umount', '--lazy', path);
  return [
    ...namespaces.map((name) => `network namespace ${name}`),
    ...chains.map((name) => `firewall chain ${name}`),
    ...mounts.map((path) => `mount ${path}`),
  ];
}

function dockerObjects(): DockerObject[] {
  return KINDS.flatMap((kind) => {
    const all = kind === 'container' || kind === 'image' ? ['--all'] : [];
    const filter = ['--filter', `label=${MANAGED_LABEL}`];
    const ids = [
      ...lines(command('docker', kind, 'ls', '--quiet', ...all, ...filter)),
      ...lines(command('docker', kind, 'ls', '--quiet', ...all, '--filter', `label=${RUN_LABEL}`)),
      ...lines(
        command('docker', kind, 'ls', '--quiet', ...all, '--filter', 'label=io.podwright.test'),
      ),
    ];
    if (ids.length === 0) return [];
    return inspect(kind, [...new Set(ids)]);
  });
}

function inspect(kind: DockerObject['kind'], ids: readonly string[]): DockerObject[] {
  type Inspected = {
    Id?: string;
    Name?: string;
    RepoTags?: string[];
    Labels?: Record<string, string> | null;
    Config?: { Labels?: Record<string, string> | null };
  };
  const text = command('docker', kind, 'inspect', ...ids);
  const found = (text === '' ? [] : JSON.parse(text)) as Inspected[];
  return found.map((object) => {
    const id = object.Id ?? object.Name ?? '';
    const labels = object.Config?.Labels ?? object.Labels ?? {};
    const ours = Object.entries(labels).filter(([name]) => name.startsWith(LABEL_PREFIX));
    const name = object.Name?.replace(/^\//, '') || object.RepoTags?.[0] || id;
    return { kind, id, name, labels: Object.fromEntries(ours) };
  });
}

/** Executors whose agents run outside this test run, for example those of an `npm start` on the same host. */
function executorsOfLiveAgents(runId: string): Set<string> {
  const claimed = processIds().flatMap((pid) => {
    const environment = processOf(pid)?.environment ?? [];
    if (environment.includes(`${RUN_VARIABLE}=${runId}`)) return [];
    return environment
      .filter((entry) => entry.startsWith('AGENT_EXECUTOR_ID='))
      .map((entry) => entry.slice('AGENT_EXECUTOR_ID='.length));
  });
  return new Set(claimed);
}

/** Returns true while a vitest process is alive. Call it after the vitest processes of this run have ended. */
function otherTestsRun(): boolean {
  return processIds().some((pid) => processOf(pid)?.command.includes('vitest.mjs') === true);
}

type Process = { command: string; environment: string[]; session: number; isContained: boolean };

/** Returns null for a process that has ended or that we may not read. */
function processOf(pid: number): Process | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The fields after the command's closing bracket: state, parent, process group, session.
    const session = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[3]);
    return {
      command: readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim(),
      environment: readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0'),
      session,
      isContained: readlinkSync(`/proc/${pid}/ns/pid`) !== readlinkSync('/proc/self/ns/pid'),
    };
  } catch {
    return null;
  }
}

function processIds(): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
}

function networkNamespaces(): string[] {
  return lines(command('ip', 'netns', 'list')).map((line) => line.split(' ')[0] ?? '');
}

function firewallChains(): string[] {
  return lines(command('iptables', '-S'))
    .filter((line) => line.startsWith('-N PODWRIGHT'))
    .map((line) => line.slice('-N '.length));
}

/** Removes jumps to the chains first: iptables rejects the removal of a chain that is in use. */
function removeChains(chains: readonly string[]): void {
  for (const rule of lines(command('iptables', '-S'))) {
    const words = rule.split(' ');
    if (rule.startsWith('-A ') && chains.includes(words.at(-1) ?? '')) {
      command('iptables', '-D', ...words.slice(1));
    }
  }
  for (const chain of chains) command('iptables', '-F', chain);
  for (const chain of chains) command('iptables', '-X', chain);
}

/** Mount points below the folder, deepest first. */
function mountsBelow(folder: string): string[] {
  return readFileSync('/proc/self/mounts', 'utf8')
    .split('\n')
    .map((line) => line.split(' ')[1] ?? '')
    .filter((path) => path.startsWith(`${folder}/`))
    .toReversed();
}

/**
 * Output of a program; empty where the program is missing or fails. It runs in a separate session: if Ctrl-C ended
 * it, an object of this run would stay, or an object of another program would count as new.
 */
function command(program: string, ...args: string[]): string {
  try {
    return execFileSync('setsid', ['--wait', program, ...args], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    });
  } catch {
    return '';
  }
}

function lines(text: string): string[] {
  return text.split('\n').filter((line) => line !== '');
}
