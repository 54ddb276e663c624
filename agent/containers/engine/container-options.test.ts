import { expect, it } from 'vitest';
import { containerOptions } from './container-options.ts';
import type { ContainerSpec } from './engine.ts';

const SPEC: ContainerSpec = {
  name: 'pod',
  image: 'sha256:1',
  labels: { a: 'b' },
  entrypoint: [],
  command: [],
  environment: { A: 'x=y' },
  network: 'net',
  ports: [{ internal: 22, host: 20_000 }],
  gpuUuids: [],
  limits: { cpuCores: 1.5, memoryBytes: 1_000, shmBytes: 100, pids: 64 },
  stopGraceSeconds: 10,
};

it('labels a volume so that it is recognized even if the engine recreates it', () => {
  const labels = { 'io.podwright.pod': 'x' };
  const volumes = [{ name: 'v', target: '/data', labels }];
  expect(containerOptions({ ...SPEC, volumes })).toMatchObject({
    HostConfig: {
      Mounts: [{ Type: 'volume', Source: 'v', Target: '/data', VolumeOptions: { Labels: labels } }],
    },
  });
});

it('gives a pod no unneeded privileges', () => {
  const binding = [{ HostIp: '', HostPort: '20000' }];
  expect(containerOptions(SPEC)).toEqual({
    Image: 'sha256:1',
    Labels: { a: 'b' },
    Env: ['A=x=y'],
    ExposedPorts: { '22/tcp': {}, '22/udp': {} },
    StopTimeout: 10,
    HostConfig: {
      Init: true,
      CapDrop: ['ALL'],
      CapAdd: expect.not.arrayContaining(['NET_RAW', 'MKNOD', 'NET_ADMIN', 'SYS_ADMIN']),
      SecurityOpt: ['no-new-privileges'],
      Memory: 1_000,
      MemorySwap: 1_000,
      NanoCpus: 1_500_000_000,
      PidsLimit: 64,
      ShmSize: 100,
      LogConfig: { Type: 'json-file', Config: { 'max-size': '50000000', 'max-file': '3' } },
      RestartPolicy: { Name: 'no' },
      NetworkMode: 'net',
      PortBindings: { '22/tcp': binding, '22/udp': binding },
    },
  });
});

it('gives /dev/shm at most half of the memory if the pod requests no size', () => {
  const shmOf = (memoryBytes: number) =>
    containerOptions({ ...SPEC, limits: { ...SPEC.limits, shmBytes: 0, memoryBytes } });
  expect(shmOf(2 ** 24)).toMatchObject({ HostConfig: { ShmSize: 2 ** 23 } });
  expect(shmOf(2 ** 33)).toMatchObject({ HostConfig: { ShmSize: 2 ** 26 } });
});

it('requests GPUs by UUID only, and replaces entrypoint and command only if set', () => {
  const request = containerOptions({ ...SPEC, gpuUuids: ['GPU-1'], command: ['x'], network: null });
  expect(request).toMatchObject({
    Cmd: ['x'],
    HostConfig: {
      NetworkMode: 'none',
      DeviceRequests: [{ DeviceIDs: ['GPU-1'], Capabilities: [['gpu']] }],
    },
  });
  expect(request).not.toHaveProperty('Entrypoint');
});

it('limits the root file system only if requested', () => {
  expect(containerOptions(SPEC)).not.toHaveProperty('HostConfig.StorageOpt');
  const limits = { ...SPEC.limits, diskBytes: 2 ** 30 };
  expect(containerOptions({ ...SPEC, limits })).toMatchObject({
    HostConfig: { StorageOpt: { size: '1073741824' } },
  });
});

it('mounts folders of the agent read-only', () => {
  const readOnlyMounts = [{ source: '/home/ssh/sftp', target: '/.podwright' }];
  const mount = { Type: 'bind', Source: '/home/ssh/sftp', Target: '/.podwright', ReadOnly: true };
  expect(containerOptions({ ...SPEC, readOnlyMounts })).toMatchObject({
    HostConfig: { Mounts: [mount] },
  });
});
