import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { HostSources } from '#shared/api/agent/inventory.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import { runCommand } from '#shared/runtime/run-command.ts';
import { sha256Hex } from '#shared/signing/signed-request.ts';
import { NO_HARDWARE } from '../../test/fakes/agents/test-agent.ts';
import { createResticVersion } from '../backups/restic-command.ts';
import { createHostProbe } from './host-probe.ts';
import { createHostSources } from './host-sources.ts';

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'podwright-sources-'));
});
afterEach(() => rmSync(root, { recursive: true }));

function put(path: string, content: string): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), content);
}

const read = (folder = join(root, 'scratch')) =>
  createHostSources({
    clock: systemClock,
    folder,
    root,
    restic: async () => '0.14.0',
    sideDisk: () => 7,
  })(root);

it('reads cards, library, processors and memory from kernel and driver', async () => {
  put('sys/bus/pci/devices/0000:01:00.0/vendor', '0x10de\n');
  put('sys/bus/pci/devices/0000:01:00.0/class', '0x030200\n');
  // Other PCI devices: the sound device of a card, and a card of another vendor.
  put('sys/bus/pci/devices/0000:01:00.1/vendor', '0x10de\n');
  put('sys/bus/pci/devices/0000:01:00.1/class', '0x040300\n');
  put('sys/bus/pci/devices/0000:02:00.0/vendor', '0x1002\n');
  put('sys/bus/pci/devices/0000:02:00.0/class', '0x030000\n');
  put(
    'proc/driver/nvidia/gpus/0000:01:00.0/information',
    'Model: \t\t NVIDIA L4\nIRQ:   \t\t 33\nGPU UUID: \t GPU-1\n',
  );
  put('usr/lib64/libnvidia-ml.so.1', 'library');
  put('sys/devices/system/cpu/present', '0-3,8\n');
  put('sys/devices/system/node/node0/meminfo', 'Node 0 MemTotal:       1000 kB\n');
  put('sys/devices/system/node/node1/meminfo', 'Node 1 MemTotal:       2000 kB\n');
  expect(await read()).toEqual({
    pci_gpus: 1,
    driver_gpus: [{ uuid: 'GPU-1', model: 'NVIDIA L4' }],
    driver_library_sha256: sha256Hex('library'),
    cpus_present: 5,
    memory_kib: 3000,
    disk_kib: null,
    disk_writable: true,
    restic: '0.14.0',
    side_disk_kib: 7,
  });
  expect(readdirSync(join(root, 'scratch'))).toEqual([]);
});

it('returns null for missing values, and reports a folder that is not writable', async () => {
  put('file', '');
  expect(await read(join(root, 'file'))).toEqual({
    pci_gpus: null,
    driver_gpus: null,
    driver_library_sha256: null,
    cpus_present: null,
    memory_kib: null,
    disk_kib: null,
    disk_writable: false,
    restic: '0.14.0',
    side_disk_kib: 7,
  });
});

/** Simulates a kernel with memory hot-plug: blocks of 128 MiB, `online` of them in use. */
function plugged(online: number, offline: number): void {
  put('sys/devices/system/memory/block_size_bytes', '8000000\n');
  const states = [...Array(online).fill('online'), ...Array(offline).fill('offline')];
  for (const [index, state] of states.entries()) {
    put(`sys/devices/system/memory/memory${index}/state`, `${state}\n`);
  }
}

const MIB = 1_024;
const judged = async (offeredKib: number) => {
  const memory_kib = (await read())?.memory_kib;
  return { memory_kib, isLie: memory_kib != null && offeredKib > memory_kib * 1.03 };
};

it('counts hot-plugged memory, which the nodes omit', async () => {
  // Observed on a virtual machine of 10 GiB to which 14 GiB were added.
  put('sys/devices/system/node/node0/meminfo', 'Node 0 MemTotal:       14248140 kB\n');
  plugged(192, 0);
  expect(await judged(24_684_084)).toEqual({ memory_kib: 192 * 128 * MIB, isLie: false });
  expect((await judged(64 * MIB * MIB)).isLie).toBe(true);
});

it('does not count offline memory, and uses the nodes’ total if blocks are hidden', async () => {
  put('sys/devices/system/node/node0/meminfo', 'Node 0 MemTotal:       130000 kB\n');
  plugged(1, 7);
  expect((await read())?.memory_kib).toBe(128 * MIB);
  put('sys/devices/system/node/node1/meminfo', 'Node 1 MemTotal:       130000 kB\n');
  expect((await read())?.memory_kib).toBe(260_000);
});

it('returns null for memory if its blocks cannot be read', async () => {
  put('sys/devices/system/node/node0/meminfo', 'Node 0 MemTotal:       14248140 kB\n');
  put('sys/devices/system/memory/memory0/state', 'online\n');
  expect((await read())?.memory_kib).toBeNull();
});

it('returns the other values if one source fails', async () => {
  put('sys/devices/system/cpu/present', '0-1\n');
  const restic = () => Promise.reject(new Error('it hangs'));
  const folder = join(root, 'scratch');
  const sideDisk = () => null;
  const sources = await createHostSources({ clock: systemClock, folder, root, restic, sideDisk })(
    root,
  );
  expect([sources.cpus_present, sources.restic]).toEqual([2, undefined]);
});

it('reads the sources of this host', async () => {
  const restic = createResticVersion({ clock: systemClock, runCommand, program: 'restic' });
  const folder = join(root, 'own');
  const sideDisk = () => null;
  const sources = await createHostSources({ clock: systemClock, folder, restic, sideDisk })('/');
  expect(HostSources.parse(sources).cpus_present).toBeGreaterThan(0);
  const { memory } = await createHostProbe({
    clock: systemClock,
    readHardware: async () => NO_HARDWARE,
  }).read('/');
  expect(memory.total_kib).toBeLessThanOrEqual((sources?.memory_kib ?? 0) * 1.03);
  expect(sources?.restic).toMatch(/^0\.\d+/);
  const none = { clock: systemClock, runCommand, program: join(root, 'restic') };
  expect(await createResticVersion(none)()).toBeNull();
});
