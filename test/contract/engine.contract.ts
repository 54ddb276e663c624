/** The contract of ContainerEngine, run against the real engine and the fake, so that tests may trust the fake. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '#shared/runtime/clock.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import {
  type ContainerEngine,
  type ContainerSpec,
  EngineError,
  type EngineEvent,
  LABELS,
  type NetworkPlace,
} from '../../agent/containers/engine/engine.ts';
import { buildContext } from '../../agent/containers/images/build-context.ts';
import { eventually } from '../fakes/eventually.ts';

/** Needs an image with a shell and a default command that ends on SIGTERM. */
export type EngineUnderTest = {
  engine: ContainerEngine;
  image: string;
  testRun: string;
  /** First of several host ports on which nothing listens. */
  firstPort: number;
};

const NEVER = new AbortController().signal;

/** Declares the suite; `prepare` runs once. All objects carry the test run's label and are removed afterwards. */
export function describeEngine(name: string, prepare: () => Promise<EngineUnderTest>): void {
  describe(`container engine: ${name}`, () => {
    let subject: EngineUnderTest;
    let engine: ContainerEngine;
    const scope = systemRandom.uuid();
    const labels = { [LABELS.managed]: '1', [LABELS.executor]: scope };

    beforeAll(async () => {
      subject = await prepare();
      engine = subject.engine;
    });

    afterAll(async () => {
      for (const { id } of await engine.listContainers(labels)) await engine.removeContainer(id);
      for (const { id } of await engine.listNetworks(labels)) await engine.removeNetwork(id);
      for (const each of await engine.listVolumes(labels)) await engine.removeVolume(each.name);
    });

    function allLabels(podId = systemRandom.uuid()): Record<string, string> {
      return { ...labels, [LABELS.pod]: podId, 'io.podwright.test-run': subject.testRun };
    }

    function specOf(change: Partial<ContainerSpec> = {}): ContainerSpec {
      return {
        name: `contract-${systemRandom.uuid()}`,
        image: subject.image,
        labels: allLabels(),
        entrypoint: [],
        command: [],
        environment: {},
        network: null,
        ports: [],
        gpuUuids: [],
        limits: { cpuCores: 0.5, memoryBytes: 2 ** 25, shmBytes: 2 ** 20, pids: 64 },
        stopGraceSeconds: 5,
        ...change,
      };
    }

    /** Returns a subnet outside the pool from which agents choose. */
    function freePlace(): NetworkPlace {
      const [high, low] = [systemRandom.int(256), 16 * systemRandom.int(16)];
      const bridgeName = `pc${systemRandom.uuid().slice(0, 8)}`;
      return { subnet: `10.203.${high}.${low}/28`, bridgeName };
    }

    async function kindOf(work: Promise<unknown>): Promise<string> {
      const error = await work.then(
        () => null,
        (reason: unknown) => reason,
      );
      return error instanceof EngineError ? error.kind : `no EngineError: ${String(error)}`;
    }

    it('responds and reports its version', async () => {
      await engine.ping();
      const info = await engine.info();
      expect(info.version).toMatch(/./);
      expect(info.rootDir).toMatch(/^\//);
      expect(info.runtimes).toContain('runc');
    });

    it('finds its images, and returns null for a missing one', async () => {
      const image = await engine.inspectImage(subject.image);
      expect(image?.id).toMatch(/^sha256:[0-9a-f]{64}$/);
      expect(await engine.inspectImage('podwright.local/none:1')).toBeNull();
    });

    it('moves a container through created, running, exited and removed', async () => {
      const spec = specOf();
      const id = await engine.createContainer(spec);
      const created = { id, name: spec.name, status: 'created', startedMs: 0, finishedMs: 0 };
      expect(await engine.inspectContainer(id)).toMatchObject({ ...created, startError: '' });

      const beforeMs = systemClock.now();
      await engine.startContainer(id);
      const running = await engine.inspectContainer(spec.name);
      expect(running?.logPath).toMatch(new RegExp(`^/.*/${id}-json\\.log$`));
      expect(running).toMatchObject({ id, status: 'running', exitCode: 0, oomKilled: false });
      expect(Math.abs((running?.startedMs ?? 0) - beforeMs)).toBeLessThan(30_000);
      expect(running?.labels).toMatchObject(spec.labels);

      await engine.stopContainer(id, 5);
      const stopped = await engine.inspectContainer(id);
      expect(stopped?.status).toBe('exited');
      expect(stopped?.finishedMs).toBeGreaterThanOrEqual(running?.startedMs ?? Infinity);

      await engine.startContainer(id);
      const again = await engine.inspectContainer(id);
      expect(again).toMatchObject({ id, status: 'running' });
      expect(again?.startedMs).toBeGreaterThan(running?.startedMs ?? Infinity);

      await engine.removeContainer(id);
      expect(await engine.inspectContainer(id)).toBeNull();
    });

    it('treats a repeated call as success', async () => {
      const id = await engine.createContainer(specOf());
      await engine.startContainer(id);
      await engine.startContainer(id);
      await engine.stopContainer(id, 5);
      await engine.stopContainer(id, 5);
      await engine.removeContainer(id);
      await engine.removeContainer(id);
      await engine.stopContainer(id, 5);
      expect(await kindOf(engine.startContainer(id))).toBe('not_found');
    });

    it('rejects a name that is taken, and an image that is missing', async () => {
      const spec = specOf();
      await engine.createContainer(spec);
      expect(await kindOf(engine.createContainer(spec))).toBe('conflict');
      const missing = specOf({ image: 'podwright.local/none:1' });
      expect(await kindOf(engine.createContainer(missing))).toBe('not_found');
    });

    it('leaves a container in state created when its host port is taken, and the error names the port', async () => {
      const ports = [{ internal: 8000, host: subject.firstPort }];
      const network = `contract-${systemRandom.uuid()}`;
      await engine.ensureNetwork(network, allLabels(), freePlace());
      const first = await engine.createContainer(specOf({ ports, network }));
      await engine.startContainer(first);
      const second = await engine.createContainer(specOf({ ports, network }));
      const refusal = await engine.startContainer(second).catch((error: unknown) => error);
      expect(refusal).toBeInstanceOf(EngineError);
      expect(refusal).toMatchObject({
        kind: 'port_busy',
        message: expect.stringContaining(String(subject.firstPort)),
      });
      const launch = await engine.containerLaunch(first);
      expect(launch?.ports).toEqual(ports);
      expect(launch?.environment).toMatchObject(specOf({ ports, network }).environment);
      const left = await engine.inspectContainer(second);
      expect(left).toMatchObject({ status: 'created', startError: expect.stringMatching(/./) });
      await engine.removeContainer(first);
      await engine.startContainer(second);
      expect(await engine.inspectContainer(second)).toMatchObject({ status: 'running' });
    });

    it('reports how much a container has written', async () => {
      const id = await engine.createContainer(specOf());
      expect(await engine.containerDiskBytes(id)).toBeGreaterThanOrEqual(0);
      await engine.removeContainer(id);
      expect(await engine.containerDiskBytes(id)).toBeNull();
    });

    it('reports the usage of a running container', async () => {
      const id = await engine.createContainer(specOf());
      expect(await engine.containerUsage(id)).toBeNull();
      await engine.startContainer(id);
      const usage = await engine.containerUsage(id);
      expect(usage?.cpuNanos).toBeGreaterThanOrEqual(0);
      expect(usage?.memoryBytes).toBeGreaterThanOrEqual(0);
      expect(usage?.memoryWithFilesBytes).toBeGreaterThanOrEqual(usage?.memoryBytes ?? Infinity);
      await engine.removeContainer(id);
      expect(await engine.containerUsage(id)).toBeNull();
    });

    it('lists exactly the containers with all the labels, in any state', async () => {
      const mine = specOf();
      const id = await engine.createContainer(mine);
      await engine.createContainer(specOf());
      const found = await engine.listContainers(mine.labels);
      expect(found.map((container) => container.id)).toEqual([id]);
      expect(await engine.listContainers({ [LABELS.executor]: systemRandom.uuid() })).toEqual([]);
    });

    it('creates a network once per name and returns it only to its owner', async () => {
      const network = `contract-${systemRandom.uuid()}`;
      const owner = allLabels();
      const { id } = await engine.ensureNetwork(network, owner, freePlace());
      expect(await engine.ensureNetwork(network, owner, freePlace())).toEqual({ id });
      expect(await kindOf(engine.ensureNetwork(network, allLabels(), freePlace()))).toBe(
        'conflict',
      );
      const found = await engine.listNetworks(owner);
      expect(found).toMatchObject([{ id, name: network }]);
      await engine.removeNetwork(id);
      await engine.removeNetwork(network);
      expect(await engine.listNetworks(owner)).toEqual([]);
    });

    it('assigns a subnet to one network only', async () => {
      const place = freePlace();
      const name = `contract-${systemRandom.uuid()}`;
      await engine.ensureNetwork(name, allLabels(), place);
      const same = { ...place, bridgeName: freePlace().bridgeName };
      const second = engine.ensureNetwork(`${name}-2`, allLabels(), same);
      expect(await kindOf(second)).toBe('subnet_taken');
      await engine.removeNetwork(name);
      await engine.ensureNetwork(`${name}-2`, allLabels(), same);
    });

    it('creates a volume once per name, returns it only to its owner, and removes it once it is unused', async () => {
      const name = `contract-${systemRandom.uuid()}`;
      const owner = allLabels();
      await engine.createVolume(name, owner);
      await engine.createVolume(name, owner);
      expect(await kindOf(engine.createVolume(name, allLabels()))).toBe('conflict');
      const [found, ...others] = await engine.listVolumes(owner);
      expect(found).toMatchObject({ name, labels: owner });
      expect(found?.hostPath).toMatch(new RegExp(`^/.*${name}`));
      expect(Math.abs((found?.createdMs ?? 0) - systemClock.now())).toBeLessThan(30_000);
      expect(others).toEqual([]);

      const volumes = [{ name, target: '/data', labels: owner }];
      const id = await engine.createContainer(specOf({ volumes }));
      expect(await kindOf(engine.removeVolume(name))).toBe('conflict');
      const files = await engine.containerFiles(id);
      expect(files?.mounts).toEqual([{ target: '/data', volumeFolder: found?.hostPath }]);
      await engine.removeContainer(id);
      expect(await engine.containerFiles(id)).toBeNull();
      expect(await engine.listVolumes(owner)).toHaveLength(1);
      await engine.removeVolume(name);
      await engine.removeVolume(name);
      expect(await engine.listVolumes(owner)).toEqual([]);
    });

    it('reports the exit of a container, and stops waiting on request', async () => {
      const id = await engine.createContainer(specOf());
      await engine.startContainer(id);
      const waiting = engine.waitContainer(id, NEVER);
      await engine.stopContainer(id, 5);
      expect(await waiting).toBe((await engine.inspectContainer(id))?.exitCode);

      await engine.startContainer(id);
      const abort = new AbortController();
      const ended = kindOf(engine.waitContainer(id, abort.signal));
      abort.abort();
      expect(await ended).not.toContain('no EngineError');
    });

    it('streams events of the labelled objects until the signal aborts', async () => {
      const podId = systemRandom.uuid();
      const mine = specOf({ labels: allLabels(podId) });
      const abort = new AbortController();
      const seen: EngineEvent[] = [];
      const reading = (async () => {
        for await (const event of engine.events({ [LABELS.pod]: podId }, abort.signal)) {
          seen.push(event);
        }
      })();
      const id = await engine.createContainer(mine);
      const other = await engine.createContainer(specOf());
      await engine.startContainer(other);
      // The stream does not report when it is open: start and stop containers until an event arrives.
      await eventually('an event', async () => {
        await engine.startContainer(id);
        await engine.stopContainer(id, 5);
        return seen.some((event) => event.action === 'die');
      });
      expect(seen.every((event) => event.podId === podId && event.containerId === id)).toBe(true);
      abort.abort();
      await reading;
    });

    it('fails to pull from a registry that it cannot reach', async () => {
      const pull = engine.pullImage(
        '127.0.0.1:1/podwright/none:1',
        { onProgress: () => undefined },
        NEVER,
      );
      expect(await kindOf(pull)).toMatch(/^image_/);
    });

    it('builds an image under a name, lists it by its labels, and removes it once it is unused', async () => {
      const build = systemRandom.uuid();
      const mark = { ...allLabels(), [LABELS.build]: build };
      const reference = `podwright.local/contract:${build}`;
      const label = Object.entries(mark).map(([name, value]) => `${name}="${value}"`);
      const output: string[] = [];
      const limits = { cpuCores: 1, memoryBytes: 2 ** 26, shmBytes: 0 };
      const make = async (step: string) => {
        const text = `FROM ${subject.image}\nLABEL ${label.join(' ')}\n${step}\n`;
        const spec = { context: await buildContext(text), reference, network: null, limits };
        return engine.buildImage(spec, (part) => output.push(part), NEVER);
      };
      expect(await kindOf(make('RUN exit 3'))).toBe('build');
      expect(output.join('')).toMatch(/Step 1/);
      const id = await make('CMD ["sleep", "1"]');
      expect(await engine.inspectImage(reference)).toMatchObject({ id, onBuild: [] });
      expect(await engine.listImages({ labels: { [LABELS.build]: build } })).toContain(id);
      expect(await engine.listImages({ labels: mark, unused: true })).not.toContain(id);

      const container = await engine.createContainer(specOf({ image: id }));
      expect(await kindOf(engine.removeImage(reference))).toBe('conflict');
      await engine.removeContainer(container);
      await engine.removeImage(reference);
      await engine.removeImage(reference);
      expect(await engine.inspectImage(reference)).toBeNull();
    });

    it('limits the number of processes of a container, and ignores a missing container', async () => {
      const id = await engine.createContainer(specOf());
      await engine.startContainer(id);
      await engine.limitPids(id, 32);
      await engine.removeContainer(id);
      await engine.limitPids(id, 32);
      expect(await engine.inspectContainer(id)).toBeNull();
    });

    it('queries a registry for a digest, and reports a missing image', async () => {
      const digest = engine.resolveDigest('127.0.0.1:1/podwright/none:1', undefined, NEVER);
      expect(await kindOf(digest)).toMatch(/^image_/);
    });
  });
}
