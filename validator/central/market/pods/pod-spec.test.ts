import { expect, it } from 'vitest';
import { testInventory } from '../../../../test/fixtures/host-inventory.ts';
import type { Template } from '../../platform/database/tables.ts';
import { podSpecFor } from './pod-spec.ts';

const template: Template = {
  id: '1948937e-5049-47ad-8e26-bcf1a4549d70',
  account_id: null,
  name: 't',
  description: '',
  docker_image: 'registry:5000/team/image',
  docker_image_tag: '2.7',
  docker_image_digest: `sha256:${'a'.repeat(64)}`,
  docker_image_size: null,
  docker_credential_id: null,
  category: 'UBUNTU',
  status: 'VERIFY_SUCCESS',
  is_private: 0,
  one_time_template: 0,
  is_temporary: 0,
  used_at: null,
  internal_ports_json: '[22,8000]',
  environment_json: '{"A":"b"}',
  tags_json: '[]',
  volumes_json: '["/workspace"]',
  entrypoint: 'tini --',
  startup_commands: "bash -c 'sleep 1 && true'",
  readme: '',
  container_start_immediately: 1,
  deleted_at: null,
  created_at: 0,
  updated_at: 0,
};
const inventory = testInventory('11111111-1111-4111-8111-111111111111', { gpus: 4 });
const [gpu] = inventory.gpu.devices;
const input = {
  template,
  inventory,
  gpuUuids: [String(gpu?.uuid)],
  gpuTotal: 4,
  portCount: null,
  notebookPort: null,
  sshPublicKeys: ['ssh-ed25519 AAAA'],
  secretNames: [],
};

it('assigns the pod its share of the node', () => {
  const memory = Math.floor(256 * 1024 ** 3 * 0.9 * 0.25);
  expect(podSpecFor(input)).toEqual({
    generation: 1,
    template: 't',
    image: { reference: 'registry:5000/team/image:2.7', digest: `sha256:${'a'.repeat(64)}` },
    entrypoint: ['tini', '--'],
    command: ['bash', '-c', 'sleep 1 && true'],
    environment: { A: 'b' },
    internal_ports: [22, 8000],
    gpu_uuids: [gpu?.uuid],
    limits: {
      cpu_cores: 8,
      memory_bytes: memory,
      shm_bytes: Math.floor(memory / 2),
      pids: 4096,
      disk_bytes: Math.floor(900 * 1024 ** 3 * 0.9 * 0.25),
    },
    ssh_public_keys: ['ssh-ed25519 AAAA'],
    publish_own_sshd: false,
    volumes: ['/workspace'],
  });
});

it('adds ports to those of the template only on request', () => {
  expect(podSpecFor({ ...input, notebookPort: 8888 }).internal_ports).toEqual([22, 8000, 8888]);
  expect(podSpecFor({ ...input, portCount: 1 }).internal_ports).toEqual([22, 8000]);
  expect(podSpecFor({ ...input, portCount: 4 }).internal_ports).toEqual([22, 8000, 20000, 20001]);
});

it('rejects specs that every agent refuses', () => {
  const bad = { ...template, docker_image: 'team/UPPER' };
  expect(() => podSpecFor({ ...input, template: bad })).toThrow(
    expect.objectContaining({ code: 'template_invalid' }),
  );
});

it.each([
  '["relative"]',
  '["/a","/a/b"]',
  JSON.stringify(
    Array(9)
      .fill('/a')
      .map((a, n) => a + n),
  ),
])('rejects volumes that no pod can have: %s', (volumes_json) => {
  expect(() => podSpecFor({ ...input, template: { ...template, volumes_json } })).toThrow(
    expect.objectContaining({ code: 'template_invalid' }),
  );
});

it("publishes the image's own SSH server if the image has one", () => {
  const own = { ...template, environment_json: '{"PODWRIGHT_OWN_SSHD":"1"}' };
  expect(podSpecFor({ ...input, template: own }).publish_own_sshd).toBe(true);
});

it("sends the template's name truncated and without control characters", () => {
  const named = (name: string) =>
    podSpecFor({ ...input, template: { ...input.template, name } }).template;
  expect(named('a\u0000b\nc')).toBe('abc');
  expect(named('\u{1f680}'.repeat(70))).toBe('\u{1f680}'.repeat(64));
});
